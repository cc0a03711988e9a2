// SPDX-License-Identifier: BSL-1.0
// Free loopback ports: chosen at random, then proven free by listening on them.
#include "loopback.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <random>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>
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

struct port_range
{
    int first = 32768;
    int last = 60999;
};

/// Returns the range of ports for outgoing connections.
port_range outgoing_ports()
{
    port_range range;
    std::ifstream file{"/proc/sys/net/ipv4/ip_local_port_range"};
    port_range read;
    if (file >> read.first >> read.last)
    {
        range = read;
    }
    return range;
}

/// Listens on a port, or on any port if it is 0. Returns an empty descriptor if the port is in use.
unique_fd listen_on(int port)
{
    unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!socket)
    {
        throw std::system_error{errno, std::generic_category(), "socket"};
    }
    // As the servers do: a port is free even if it has connections in TIME_WAIT.
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(socket.get(), generic, sizeof address) != 0 || ::listen(socket.get(), backlog) != 0)
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
    const port_range outgoing = outgoing_ports();
    std::random_device entropy;
    std::uniform_int_distribution<int> any_port{lowest_port, highest_port};
    for (int candidate = 0; candidate < max_candidates; ++candidate)
    {
        const int port = any_port(entropy);
        if (port >= outgoing.first && port <= outgoing.last)
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

} // namespace redlock::test
