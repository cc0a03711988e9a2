// SPDX-License-Identifier: BSL-1.0
// A network namespace belongs to a thread, so the rest of the process is unaffected.
#include "foreign_address.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redlock::test
{

namespace
{

constexpr const char* of_documentations = "198.51.100.7"; // RFC 5737

void change(const unique_fd& socket, unsigned long what, ifreq& request)
{
    if (::ioctl(socket.get(), what, &request) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "the loopback interface"};
    }
}

/// The loopback interface of a new namespace is down, and has only its own address.
void set_up_loopback()
{
    const unique_fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    ifreq up{};
    std::strcpy(up.ifr_name, "lo");
    up.ifr_flags = IFF_UP;
    change(socket, SIOCSIFFLAGS, up);
    ifreq alias{};
    std::strcpy(alias.ifr_name, "lo:1");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, of_documentations, &address.sin_addr);
    std::memcpy(&alias.ifr_addr, &address, sizeof address);
    change(socket, SIOCSIFADDR, alias);
}

/// Returns the first IPv4 address that isn't a loopback one; empty if there is none.
std::string address_of_machine()
{
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0)
    {
        throw std::system_error{errno, std::generic_category(), "getifaddrs"};
    }
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all{first, &::freeifaddrs};
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next)
    {
        const bool fits = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
                          (each->ifa_flags & IFF_LOOPBACK) == 0 && (each->ifa_flags & IFF_UP) != 0;
        if (fits)
        {
            sockaddr_in address{};
            std::memcpy(&address, each->ifa_addr, sizeof address);
            std::string text(INET_ADDRSTRLEN, '\0');
            ::inet_ntop(AF_INET, &address.sin_addr, text.data(), INET_ADDRSTRLEN);
            return text.c_str();
        }
    }
    return {};
}

} // namespace

foreign_address::foreign_address()
{
    unique_fd before{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
    if (before && ::unshare(CLONE_NEWNET) == 0)
    {
        network_before_ = std::move(before);
        set_up_loopback();
        text_ = of_documentations;
        return;
    }
    text_ = address_of_machine();
    if (text_.empty())
    {
        throw std::runtime_error{
            "this machine has loopback addresses only, and doesn't permit a separate network"};
    }
}

foreign_address::~foreign_address()
{
    if (network_before_ && ::setns(network_before_.get(), CLONE_NEWNET) != 0)
    {
        // The results of further tests would be meaningless in the wrong network.
        ::_exit(70);
    }
}

} // namespace redlock::test
