// SPDX-License-Identifier: BSL-1.0
// The reference client on epoll.
#include "harness/reference_clients.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace redlock::bench
{

namespace
{

constexpr int timeout_ms = 10'000;
constexpr std::size_t max_events = 32;

[[noreturn]] void fail(const char* what)
{
    throw std::system_error{errno, std::generic_category(), what};
}

} // namespace

raw_client::raw_client(std::span<const int> ports)
    : epoll_{::epoll_create1(EPOLL_CLOEXEC)}, protocol_{ports, "account"}
{
    if (!epoll_)
    {
        fail("epoll_create1");
    }
    for (const int port : ports)
    {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = sockets_.size();
        const test::unique_fd& connected = sockets_.emplace_back(test::connect_to_loopback(port));
        if (::fcntl(connected.get(), F_SETFL, O_NONBLOCK) != 0 ||
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connected.get(), &event) != 0)
        {
            fail("preparing the connection to a master");
        }
    }
}

run_record raw_client::run(const workload& load)
{
    run_record done;
    stopwatch watch{done, load};
    protocol_.start(load, watch);
    send_all();
    while (!protocol_.idle())
    {
        wait(watch);
        send_all();
    }
    watch.finish();
    return done;
}

void raw_client::send_all()
{
    for (std::size_t master = 0; master < sockets_.size(); ++master)
    {
        std::string& output = protocol_.output(master);
        if (output.empty())
        {
            continue;
        }
        const ssize_t sent = ::send(sockets_[master].get(), output.data(), output.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
        {
            fail("sending to a master");
        }
        // The rest is sent with the next commands. There is always a reply outstanding that triggers another send.
        output.erase(0, sent < 0 ? 0 : static_cast<std::size_t>(sent));
    }
}

void raw_client::wait(stopwatch& watch)
{
    std::array<epoll_event, max_events> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    if (count == 0)
    {
        throw std::runtime_error{"a master did not answer the reference client within 10 s"};
    }
    for (int at = 0; at < count; ++at)
    {
        receive(events[static_cast<std::size_t>(at)].data.u64, watch);
    }
}

void raw_client::receive(std::size_t master, stopwatch& watch)
{
    std::array<char, 16384> buffer;
    const ssize_t received = ::recv(sockets_[master].get(), buffer.data(), buffer.size(), 0);
    if (received <= 0)
    {
        fail("reading from a master");
    }
    protocol_.receive(master, {buffer.data(), static_cast<std::size_t>(received)}, watch);
}

} // namespace redlock::bench
