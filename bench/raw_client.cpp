// SPDX-License-Identifier: BSL-1.0
// The reference on plain epoll.
#include "raw_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <system_error>
#include <utility>

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
    connections_.reserve(masters.size()); // The events point to them.
    for (test::server& master : masters)
    {
        digest_ = master.command({"SCRIPT", "LOAD", release_script}).text;
        connection& made = connections_.emplace_back();
        made.socket = connect_to(master.port());
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &made;
        if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made.socket.get(), &event) != 0)
        {
            fail("epoll_ctl");
        }
    }
}

void raw_client::add_workers(std::size_t count)
{
    const std::string owner(owner_id_length, '#');
    while (workers_.size() < count)
    {
        worker& added = workers_.emplace_back();
        const std::string key = std::string{key_prefix} + resource_of("account", workers_.size());
        added.acquire = formatted({"SET", key, owner, "NX", "PX", std::to_string(ttl.count())});
        added.release = formatted({"EVALSHA", digest_, "1", key, owner});
        added.owner_in_acquire = added.acquire.find(owner);
        added.owner_in_release = added.release.find(owner);
    }
    for (connection& each : connections_)
    {
        // A command for each worker, and what the minority still owes of the one before.
        each.unanswered.resize(std::max(each.unanswered.size(), 4 * workers_.size()));
    }
}

stretch raw_client::run(const work& what)
{
    add_workers(what.workers);
    stretch done;
    stopwatch watch{done, what};
    for (std::size_t each = 0; each < what.workers; ++each)
    {
        begin_pair(workers_[each], watch);
    }
    send_all();
    // Until nobody is in a pair, and the minority has answered, too.
    while (unanswered_ > 0)
    {
        wait(watch);
        send_all();
    }
    watch.finish();
    return done;
}

void raw_client::begin_pair(worker& by, stopwatch& watch)
{
    if (!watch.begin_acquire(by.asked))
    {
        return;
    }
    std::array<unsigned char, owner_id_length / 2> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    {
        fail("getrandom");
    }
    char* out = by.acquire.data() + by.owner_in_acquire;
    for (const unsigned value : random)
    {
        *out++ = "0123456789abcdef"[value >> 4U];
        *out++ = "0123456789abcdef"[value & 15U];
    }
    std::memcpy(
        by.release.data() + by.owner_in_release, by.acquire.data() + by.owner_in_acquire, owner_id_length);
    by.acquiring = true;
    ask(by, by.acquire);
}

void raw_client::ask(worker& by, const std::string& command)
{
    ++by.command;
    by.votes = 0;
    const auto number = static_cast<std::uint32_t>(&by - workers_.data());
    for (connection& each : connections_)
    {
        each.output += command;
        if (each.count == each.unanswered.size())
        {
            std::rotate(
                each.unanswered.begin(), each.unanswered.begin() + static_cast<std::ptrdiff_t>(each.oldest),
                each.unanswered.end());
            each.oldest = 0;
            each.unanswered.resize(2 * each.count);
        }
        each.unanswered[(each.oldest + each.count++) % each.unanswered.size()] = {number, by.command};
        ++unanswered_;
    }
}

void raw_client::on_majority(worker& by, stopwatch& watch)
{
    if (std::exchange(by.acquiring, false))
    {
        watch.end_acquire(by.asked);
        ask(by, by.release);
    }
    else
    {
        begin_pair(by, watch);
    }
}

void raw_client::send_all()
{
    for (connection& each : connections_)
    {
        if (each.output.empty())
        {
            continue;
        }
        const ssize_t sent = ::send(each.socket.get(), each.output.data(), each.output.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
        {
            fail("sending to a master");
        }
        // What didn't fit goes with the next ones: there are always replies to come.
        each.output.erase(0, sent < 0 ? 0 : static_cast<std::size_t>(sent));
    }
}

void raw_client::wait(stopwatch& watch)
{
    std::array<epoll_event, most_events> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (count == 0)
    {
        throw std::runtime_error{"the reference got no answer from a master in 10 s"};
    }
    for (int at = 0; at < count; ++at)
    {
        take_replies(*static_cast<connection*>(events[static_cast<std::size_t>(at)].data.ptr), watch);
    }
}

/// Every reply is one line: "+OK", ":1".
void raw_client::take_replies(connection& from, stopwatch& watch)
{
    std::array<char, 16384> buffer;
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
            from.first = '\0';
            on_reply(from, watch);
        }
    }
}

void raw_client::on_reply(connection& from, stopwatch& watch)
{
    const question answered = from.unanswered[from.oldest];
    from.oldest = (from.oldest + 1) % from.unanswered.size();
    --from.count;
    --unanswered_;
    worker& by = workers_[answered.worker];
    if (answered.command == by.command && ++by.votes == connections_.size() / 2 + 1)
    {
        on_majority(by, watch);
    }
}

} // namespace redlock::bench
