// SPDX-License-Identifier: BSL-1.0
// Interposes functions of the C library that make one system call each: counts the call and forwards it.
#include "harness/client.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

constinit thread_local redlock::bench::system_calls calls;

/// Calls the C library's function.
template <auto Function, class... Arguments>
auto call(const char* name, Arguments... arguments)
{
    static const auto original = reinterpret_cast<decltype(Function)>(::dlsym(RTLD_NEXT, name));
    ++calls.count;
    return original(arguments...);
}

ssize_t counted(ssize_t bytes, std::uint64_t& sum)
{
    sum += bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
    return bytes;
}

} // namespace

#pragma GCC visibility push(default) // So that shared libraries call these as well.

extern "C"
{
    int epoll_wait(int poll, epoll_event* events, int max, int timeout)
    {
        return call<&::epoll_wait>("epoll_wait", poll, events, max, timeout);
    }

    int epoll_ctl(int poll, int operation, int descriptor, epoll_event* event) noexcept
    {
        return call<&::epoll_ctl>("epoll_ctl", poll, operation, descriptor, event);
    }

    int poll(pollfd* descriptors, nfds_t count, int timeout)
    {
        return call<&::poll>("poll", descriptors, count, timeout);
    }

    int timerfd_settime(int timer, int flags, const itimerspec* value, itimerspec* old) noexcept
    {
        return call<&::timerfd_settime>("timerfd_settime", timer, flags, value, old);
    }

    ssize_t getrandom(void* out, size_t size, unsigned flags)
    {
        return call<&::getrandom>("getrandom", out, size, flags);
    }

    /// For timers and event descriptors. Sockets aren't read with it.
    ssize_t read(int descriptor, void* out, size_t size)
    {
        return call<&::read>("read", descriptor, out, size);
    }

    ssize_t write(int descriptor, const void* bytes, size_t size)
    {
        return call<&::write>("write", descriptor, bytes, size);
    }

    ssize_t send(int socket, const void* bytes, size_t size, int flags)
    {
        return counted(call<&::send>("send", socket, bytes, size, flags), calls.sent);
    }

    ssize_t sendmsg(int socket, const msghdr* message, int flags)
    {
        return counted(call<&::sendmsg>("sendmsg", socket, message, flags), calls.sent);
    }

    ssize_t recv(int socket, void* out, size_t size, int flags)
    {
        return counted(call<&::recv>("recv", socket, out, size, flags), calls.received);
    }

    ssize_t recvmsg(int socket, msghdr* message, int flags)
    {
        return counted(call<&::recvmsg>("recvmsg", socket, message, flags), calls.received);
    }
}

#pragma GCC visibility pop

namespace redlock::bench
{

system_calls system_calls_of_this_thread() noexcept
{
    return calls;
}

} // namespace redlock::bench
