// SPDX-License-Identifier: BSL-1.0
// Root may make a namespace; others only within a user namespace, where they are root.
#include "own_network.hpp"

#include "support/loopback.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redlock::nemesis
{

std::string enter_own_network()
{
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (::unshare(CLONE_NEWNET) != 0)
    {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        {
            return std::generic_category().message(errno);
        }
        std::ofstream{"/proc/self/setgroups"} << "deny";
        std::ofstream{"/proc/self/uid_map"} << fmt::format("0 {} 1", user);
        std::ofstream{"/proc/self/gid_map"} << fmt::format("0 {} 1", group);
    }
    plug_in(true);
    return {};
}

void plug_in(bool in)
{
    const test::unique_fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    int result = ::ioctl(socket.get(), SIOCGIFFLAGS, &request);
    const int flags = in ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
    request.ifr_flags = static_cast<short>(flags);
    result = result == 0 ? ::ioctl(socket.get(), SIOCSIFFLAGS, &request) : result;
    if (result != 0)
    {
        throw std::system_error{errno, std::generic_category(), "the loopback interface"};
    }
}

} // namespace redlock::nemesis
