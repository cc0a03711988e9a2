// SPDX-License-Identifier: BSL-1.0
// Compares fencing tokens next to a file: example_file_server checked|unchecked <file> <token> [<balance>]
//
// Runs on the machine that has the file, once for each request: as the forced command of an SSH key, for example.
// Without a balance, it notes the token and prints the balance. The file is a line with the largest token and the
// balance. With `unchecked` it compares nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace fs = std::filesystem;

constexpr int superseded = 75;

void require(bool so, const std::string& what)
{
    if (!so)
    {
        throw std::system_error{errno, std::generic_category(), what};
    }
}

/// An open file or directory.
class descriptor
{
  public:
    descriptor(const fs::path& path, int flags) : value_{::open(path.c_str(), flags | O_CLOEXEC, 0600)}
    {
        require(value_ >= 0, "open " + path.string());
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() { ::close(value_); }

    int value() const noexcept { return value_; }
    void synchronise() const { require(::fsync(value_) == 0, "fsync"); }

  private:
    int value_;
};

/// What the file contains. Both change together.
struct record
{
    std::uint64_t token = 0;
    std::int64_t balance = 0;
};

record read_record(const fs::path& path)
{
    record found;
    std::ifstream file{path};
    if (!(file >> found.token >> found.balance))
    {
        throw std::runtime_error{path.string() + " isn't a token and a balance"};
    }
    return found;
}

/// Replaces the file. After a crash it is either the old one or the new one.
void write_record(const fs::path& path, const record& value)
{
    fs::path draft = path;
    draft += ".draft";
    const std::string text = std::to_string(value.token) + ' ' + std::to_string(value.balance) + '\n';
    {
        const descriptor file{draft, O_WRONLY | O_CREAT | O_TRUNC};
        const ssize_t written = ::write(file.value(), text.data(), text.size());
        require(written == static_cast<ssize_t>(text.size()), "write " + draft.string());
        file.synchronise();
    }
    fs::rename(draft, path);
    descriptor{fs::absolute(path).parent_path(), O_RDONLY | O_DIRECTORY}.synchronise();
}

int main(int argc, char** argv)
{
    if (argc < 4)
    {
        std::cerr << "usage: " << argv[0] << " checked|unchecked <file> <token> [<balance>]\n";
        return 64;
    }
    try
    {
        const fs::path path = argv[2];
        const std::uint64_t token = std::stoull(argv[3]);
        // A separate file, because the other one is replaced. The kernel unlocks it when the program ends.
        const descriptor lock{path.string() + ".lock", O_RDWR | O_CREAT};
        require(::flock(lock.value(), LOCK_EX) == 0, "flock");

        record current = read_record(path);
        if (argv[1] == std::string_view{"checked"} && token < current.token)
        {
            std::cerr << "a later holder has shown its token\n";
            return superseded;
        }
        current.token = token;
        if (argc > 4)
        {
            current.balance = std::stoll(argv[4]);
        }
        write_record(path, current);
        std::cout << current.balance << '\n';
        return 0;
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
