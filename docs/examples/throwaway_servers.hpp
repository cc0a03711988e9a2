// SPDX-License-Identifier: BSL-1.0
// Redis servers for an example: child processes on free ports of this machine, each with its own directory, that end
// with the example. This is not part of the library.
#pragma once

#include <redlock/master.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

/// A server. It keeps its data across `kill` and `restart`: every write is on the disk before it is answered.
class throwaway_server
{
  public:
    throwaway_server()
    {
        std::string path = (std::filesystem::temp_directory_path() / "redlock-example-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr)
        {
            throw std::runtime_error{"can't make a temporary directory"};
        }
        directory_ = path;
        std::string log;
        for (int attempt = 0; attempt < 5; ++attempt)
        {
            // Another process may take the port before the server does.
            port_ = free_port();
            if (start(log))
            {
                return;
            }
        }
        std::filesystem::remove_all(directory_);
        throw std::runtime_error{"a server didn't start:\n" + log};
    }
    throwaway_server(const throwaway_server&) = delete;
    throwaway_server& operator=(const throwaway_server&) = delete;
    ~throwaway_server()
    {
        kill();
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }

    std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

    /// Kills the server without warning, and waits until it is dead.
    void kill()
    {
        if (pid_ > 0)
        {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }

    /// Stops the process, which keeps its connections and answers nothing, until `resume`.
    void hang() { ::kill(pid_, SIGSTOP); }
    void resume() { ::kill(pid_, SIGCONT); }

    /// Starts the server again on the same port, and waits until it answers.
    void restart()
    {
        kill();
        std::string log;
        if (!start(log))
        {
            throw std::runtime_error{"a server didn't restart:\n" + log};
        }
    }

  private:
    /// Below the ports of outgoing connections: none of those takes the port while the server is down.
    static std::uint16_t free_port()
    {
        std::random_device chance;
        std::uniform_int_distribution<int> ports{20000, 32000};
        for (int attempt = 0; attempt < 1000; ++attempt)
        {
            const auto port = static_cast<std::uint16_t>(ports(chance));
            const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            address.sin_port = htons(port);
            const int taken = ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
            ::close(probe);
            if (taken == 0)
            {
                return port;
            }
        }
        throw std::runtime_error{"there is no free port from 20000 to 32000"};
    }

    /// False if the server ended or doesn't get ready; `log` is its output.
    bool start(std::string& log)
    {
        std::vector<std::string> words{
            "redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1",     "--dir", directory_,
            "--save",       "",       "--appendonly",        "yes",    "--appendfsync", "no"};
        std::vector<char*> arguments;
        for (std::string& word : words)
        {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);

        std::array<int, 2> output{};
        if (::pipe2(output.data(), O_CLOEXEC) != 0)
        {
            throw std::runtime_error{"can't make a pipe"};
        }
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ == 0)
        {
            // The server ends with the thread that started it, however that ends.
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() == parent && ::dup2(output[1], STDOUT_FILENO) >= 0)
            {
                ::execvp("redis-server", arguments.data());
                ::execvp("valkey-server", arguments.data());
            }
            ::_exit(127);
        }
        ::close(output[1]);
        log.clear();
        const bool ready = pid_ > 0 && read_until_ready(output[0], log);
        ::close(output[0]);
        if (!ready)
        {
            kill();
        }
        return ready;
    }

    /// Reads the server's output until it reports that it is ready, has ended, or took too long.
    static bool read_until_ready(int output, std::string& log)
    {
        using namespace std::chrono;
        const auto end = steady_clock::now() + 20s;
        while (log.find("Ready to accept connections") == std::string::npos)
        {
            const auto left = duration_cast<milliseconds>(end - steady_clock::now()).count();
            pollfd readable{output, POLLIN, 0};
            std::array<char, 4096> bytes{};
            if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0)
            {
                return false;
            }
            const ssize_t size = ::read(output, bytes.data(), bytes.size());
            if (size <= 0)
            {
                log += log.empty() ? "neither redis-server nor valkey-server could be run" : "";
                return false;
            }
            log.append(bytes.data(), static_cast<std::size_t>(size));
        }
        return true;
    }

    std::string directory_;
    std::uint16_t port_ = 0;
    pid_t pid_ = -1;
};

/// Returns the masters for the configuration of the library.
inline std::vector<redlock::master> masters_of(const std::vector<throwaway_server>& servers)
{
    std::vector<redlock::master> masters;
    for (const throwaway_server& server : servers)
    {
        masters.emplace_back(server.url());
    }
    return masters;
}
