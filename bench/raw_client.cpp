// SPDX-License-Identifier: BSL-1.0
// The reference on plain epoll.
#include "raw_client.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t owner_id_length = 32;
constexpr int patience_ms = 10'000;
constexpr std::size_t most_events = 32;
constexpr std::string_view release_script =
    R"lua(if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0)lua";

[[noreturn]] void fail(const char* what)
{
    throw std::system_error{errno, std::generic_category(), what};
}

std::string formatted(std::initializer_list<std::string_view> words)
{
    std::string command = fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words)
    {
        command += fmt::format("${}\r\n{}\r\n", word.size(), word);
    }
    return command;
}

test::unique_fd connect_to(int port)
{
    test::unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    if (!socket ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0)
    {
        fail("connecting to a master");
    }
    return socket;
}

} // namespace

raw_client::raw_client(std::span<test::server> masters) : epoll_{::epoll_create1(EPOLL_CLOEXEC)}
{
    if (!epoll_)
    {
        fail("epoll_create1");
    }
    std::string digest;
    connections_.reserve(masters.size()); // The events point to them.
    for (test::server& master : masters)
    {
        digest = master.command({"SCRIPT", "LOAD", release_script}).text;
        connection& made = connections_.emplace_back(connection{connect_to(master.port())});
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &made;
        if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made.socket.get(), &event) != 0)
        {
            fail("epoll_ctl");
        }
    }
    const std::string owner(owner_id_length, '#');
    acquire_ = formatted({"SET", key, owner, "NX", "PX", std::to_string(ttl.count())});
    release_ = formatted({"EVALSHA", digest, "1", key, owner});
    owner_in_acquire_ = acquire_.data() + acquire_.find(owner);
    owner_in_release_ = release_.data() + release_.find(owner);
}

void raw_client::make_owner_id()
{
    std::array<unsigned char, owner_id_length / 2> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    {
        fail("getrandom");
    }
    char* out = owner_in_acquire_;
    for (const unsigned value : random)
    {
        *out++ = "0123456789abcdef"[value >> 4U];
        *out++ = "0123456789abcdef"[value & 15U];
    }
    std::memcpy(owner_in_release_, owner_in_acquire_, owner_id_length);
}

stretch raw_client::run(const work& what)
{
    stretch done;
    stopwatch watch{done, what};
    do
    {
        watch.begin_acquire();
        make_owner_id();
        ask_all(acquire_, '+');
        watch.end_acquire();
        ask_all(release_, ':');
    } while (watch.goes_on());
    watch.finish();
    await_all();
    return done;
}

/// Returns once a majority has answered as expected. The others' answers are taken with those to a later
/// command.
void raw_client::ask_all(std::string_view command, char expected)
{
    ++asked_;
    expected_ = expected;
    votes_ = 0;
    for (connection& each : connections_)
    {
        const ssize_t sent = ::send(each.socket.get(), command.data(), command.size(), MSG_NOSIGNAL);
        if (sent != static_cast<ssize_t>(command.size()))
        {
            fail("sending to a master");
        }
    }
    const std::size_t quorum = connections_.size() / 2 + 1;
    while (votes_ < quorum)
    {
        wait();
    }
}

void raw_client::await_all()
{
    for (const connection& each : connections_)
    {
        while (each.answered < asked_)
        {
            wait();
        }
    }
}

void raw_client::wait()
{
    std::array<epoll_event, most_events> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (count == 0)
    {
        throw std::runtime_error{"the reference got no answer from a master in 10 s"};
    }
    for (int at = 0; at < count; ++at)
    {
        take_replies(*static_cast<connection*>(events[static_cast<std::size_t>(at)].data.ptr));
    }
}

/// Every reply is one line: "+OK", ":1".
void raw_client::take_replies(connection& from)
{
    std::array<char, 4096> buffer;
    const ssize_t received = ::recv(from.socket.get(), buffer.data(), buffer.size(), 0);
    if (received <= 0)
    {
        fail("reading from a master");
    }
    for (const char byte : std::string_view{buffer.data(), static_cast<std::size_t>(received)})
    {
        if (from.first == '\0')
        {
            from.first = byte;
            if (byte != '+' && byte != ':')
            {
                throw std::runtime_error{"a master refused a command of the reference"};
            }
        }
        if (byte == '\n')
        {
            ++from.answered;
            votes_ += from.answered == asked_ && from.first == expected_ ? 1U : 0U;
            from.first = '\0';
        }
    }
}

} // namespace redlock::bench
