// SPDX-License-Identifier: BSL-1.0
// Free loopback ports: chosen at random, then proven free by listening on them.
#include "loopback.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <random>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redlock::test
{
namespace
{

constexpr int lowest_port = 15000;
constexpr int highest_port = 65000;
constexpr int max_candidates = 256;
constexpr int backlog = 1024;

/// Returns the first and the last port for outgoing connections.
std::pair<int, int> outgoing_ports()
{
    std::ifstream file{"/proc/sys/net/ipv4/ip_local_port_range"};
    int first = 0;
    int last = 0;
    return file >> first >> last ? std::pair{first, last} : std::pair{32768, 60999};
}

void set_reuse(const unique_fd& socket, int value)
{
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &value, sizeof value);
}

/// Binds a socket to a port, or to any port if it is 0. Returns an empty descriptor if the port is in use.
unique_fd bind_to(int port)
{
    unique_fd socket = open_socket(AF_INET);
    set_reuse(socket, 1); // As the servers do: a port is free even if it has connections in TIME_WAIT.
    const sockaddr_in address = loopback_address(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    {
        return {};
    }
    return socket;
}

/// Listens on a port, or on any port if it is 0. Returns an empty descriptor if the port is in use.
unique_fd listen_on(int port)
{
    unique_fd socket = bind_to(port);
    if (socket && ::listen(socket.get(), backlog) != 0)
    {
        return {};
    }
    return socket;
}

int port_of(const unique_fd& socket)
{
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "getsockname"};
    }
    return ntohs(address.sin_port);
}

} // namespace

void unique_fd::reset()
{
    if (descriptor_ >= 0)
    {
        ::close(std::exchange(descriptor_, -1));
    }
}

listener listen_on_loopback()
{
    const auto [first_outgoing, last_outgoing] = outgoing_ports();
    std::random_device entropy;
    std::uniform_int_distribution<int> any_port{lowest_port, highest_port};
    for (int candidate = 0; candidate < max_candidates; ++candidate)
    {
        const int port = any_port(entropy);
        if (port >= first_outgoing && port <= last_outgoing)
        {
            continue;
        }
        if (unique_fd socket = listen_on(port))
        {
            return {std::move(socket), port};
        }
    }
    unique_fd socket = listen_on(0);
    if (!socket)
    {
        throw std::system_error{errno, std::generic_category(), "no free port on 127.0.0.1"};
    }
    const int port = port_of(socket);
    return {std::move(socket), port};
}

int free_port()
{
    return listen_on_loopback().port;
}

unique_fd hold_port(int port)
{
    unique_fd socket = bind_to(port);
    if (socket)
    {
        set_reuse(socket, 0); // Listening there needs the consent of both.
    }
    return socket;
}

unique_fd open_socket(int family)
{
    unique_fd socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!socket)
    {
        throw std::system_error{errno, std::generic_category(), "socket"};
    }
    return socket;
}

sockaddr_in loopback_address(int port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

unique_fd connect_to_loopback(int port)
{
    unique_fd socket = open_socket(AF_INET);
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr_in address = loopback_address(port);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "connecting to 127.0.0.1"};
    }
    return socket;
}

bool wait_for(int descriptor, short events, std::chrono::steady_clock::time_point deadline)
{
    constexpr std::chrono::milliseconds max_poll{60'000};
    using clock = std::chrono::steady_clock;
    pollfd readiness{descriptor, events, 0};
    int ready = 0;
    do
    {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
        ready = ::poll(&readiness, 1, static_cast<int>(std::clamp(left, {}, max_poll).count()));
    } while (ready <= 0 && clock::now() < deadline);
    return ready > 0;
}

} // namespace redlock::test
