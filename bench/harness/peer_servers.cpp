// SPDX-License-Identifier: BSL-1.0
// Starts etcd and PostgreSQL.
#include "harness/peer_servers.hpp"

#include "harness/client.hpp"

#include "support/control_client.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

namespace redlock::bench
{

namespace
{

constexpr std::chrono::minutes initdb_timeout{1};
constexpr std::chrono::minutes start_timeout{1};
constexpr std::chrono::milliseconds retry_interval{20};
constexpr std::chrono::seconds stop_timeout{20};
constexpr std::size_t reported_lines = 3;
constexpr const char* postgres_user = "postgres"; // The user of the Debian package.

bool accepts_connections(int port)
{
    try
    {
        test::control_client::to_port(port);
        return true;
    }
    catch (const test::connection_lost&)
    {
        return false;
    }
}

/// Returns the directory of PostgreSQL's programs with a trailing slash. Debian has one per version, none of them
/// on PATH.
std::string postgres_programs()
{
    constexpr std::string_view last = "initdb";
    std::string found = test::find_program(std::string{last});
    int newest = 0;
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator{"/usr/lib/postgresql", ignored})
    {
        const std::string candidate = fmt::format("{}/bin/{}", each.path().string(), last);
        const int version = std::atoi(each.path().filename().c_str());
        if (version > newest && !test::find_program(candidate).empty())
        {
            newest = version;
            found = candidate;
        }
    }
    if (found.empty())
    {
        throw std::runtime_error{"PostgreSQL is not installed"};
    }
    return found.substr(0, found.size() - last.size());
}

/// Returns the prefix that makes a command run as another user if this process is root, otherwise nothing. Changes
/// the owner of the files to that user.
std::vector<std::string> unprivileged_prefix(const std::vector<std::string>& files)
{
    if (::geteuid() != 0)
    {
        return {};
    }
    const passwd* user = ::getpwnam(postgres_user);
    if (user == nullptr)
    {
        throw std::runtime_error{
            fmt::format("PostgreSQL refuses to run as root, and the user '{}' doesn't exist", postgres_user)};
    }
    for (const std::string& file : files)
    {
        if (::chown(file.c_str(), user->pw_uid, user->pw_gid) != 0)
        {
            throw std::system_error{errno, std::generic_category(), "chown " + file};
        }
    }
    // The parent-death signal is cleared when the user changes, so it is set again.
    return {
        "setpriv", fmt::format("--reuid={}", user->pw_uid), fmt::format("--regid={}", user->pw_gid),
        "--init-groups", "--pdeathsig=INT"};
}

std::chrono::nanoseconds cpu_of_process(pid_t id)
{
    clockid_t clock{};
    // A process that has ended in the meantime has no clock.
    return ::clock_getcpuclockid(id, &clock) == 0 ? cpu_time(clock) : std::chrono::nanoseconds{0};
}

/// Returns the process id of a process's parent, from /proc/<pid>/stat: "1 (name) S <parent> ...".
pid_t parent_of(const std::filesystem::path& process)
{
    std::ifstream file{process / "stat"};
    const std::string content{std::istreambuf_iterator<char>{file}, {}};
    std::istringstream rest{content.substr(std::min(content.rfind(')') + 1, content.size()))};
    char state{};
    pid_t parent = -1;
    rest >> state >> parent;
    return parent;
}

} // namespace

std::string end_of(const std::string& output)
{
    return fmt::format("{}", fmt::join(test::last_lines(output, reported_lines), " / "));
}

std::chrono::nanoseconds peer_server::cpu() const
{
    std::chrono::nanoseconds sum = cpu_of_process(process_.pid());
    for (const auto& each : std::filesystem::directory_iterator{"/proc"})
    {
        const pid_t id = std::atoi(each.path().filename().c_str());
        if (id > 0 && parent_of(each.path()) == process_.pid())
        {
            sum += cpu_of_process(id);
        }
    }
    return sum;
}

void peer_server::start(const std::vector<std::string>& command)
{
    process_ = test::child_process{command, output()};
    const auto deadline = std::chrono::steady_clock::now() + start_timeout;
    while (!accepts_connections(port_))
    {
        if (process_.wait_for_end(retry_interval) || std::chrono::steady_clock::now() > deadline)
        {
            throw std::runtime_error{
                fmt::format("the server did not start; the end of its output: {}", end_of(output()))};
        }
    }
}

etcd_server::etcd_server()
{
    if (test::find_program("etcd").empty())
    {
        throw std::runtime_error{"etcd is not installed"};
    }
    const std::string clients = fmt::format("http://127.0.0.1:{}", port_);
    const std::string peers = fmt::format("http://127.0.0.1:{}", test::free_port());
    start(
        {"etcd", "--data-dir", data(), "--listen-client-urls", clients, "--advertise-client-urls", clients,
         "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster",
         "default=" + peers});
}

postgres_server::postgres_server(std::size_t max_clients)
{
    const std::string programs = postgres_programs();
    write_password();
    const std::vector<std::string> as_user = unprivileged_prefix({directory_.path(), password_file()});
    const auto unprivileged = [&](std::vector<std::string> words)
    {
        words.insert(words.begin(), as_user.begin(), as_user.end());
        return words;
    };
    const test::child_process initdb{
        unprivileged(
            {programs + "initdb", "-D", data(), fmt::format("--username={}", user), "--auth=password",
             "--pwfile=" + password_file(), "--locale=C", "--encoding=UTF8", "--no-sync"}),
        output()};
    // If initdb fails, it removes the files that it created.
    if (!initdb.wait_for_end(initdb_timeout) || !std::filesystem::exists(data() + "/PG_VERSION"))
    {
        throw std::runtime_error{fmt::format("initdb failed; the end of its output: {}", end_of(output()))};
    }
    start(unprivileged(
        {programs + "postgres", "-D", data(), "-c", "listen_addresses=127.0.0.1", "-c",
         fmt::format("port={}", port_), "-c", "unix_socket_directories=", "-c",
         fmt::format("max_connections={}", max_clients)}));
}

postgres_server::~postgres_server()
{
    if (process_.running() && ::kill(process_.pid(), SIGINT) == 0)
    {
        process_.wait_for_end(stop_timeout);
    }
}

void postgres_server::write_password()
{
    std::random_device entropy;
    std::ofstream file{password_file()};
    password_ = fmt::format("{:08x}{:08x}{:08x}{:08x}", entropy(), entropy(), entropy(), entropy());
    file << password_ << '\n';
    if (!file.flush())
    {
        throw std::runtime_error{fmt::format("cannot write the file '{}'", password_file())};
    }
}

} // namespace redlock::bench
