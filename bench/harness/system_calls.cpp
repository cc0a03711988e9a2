// SPDX-License-Identifier: BSL-1.0
// Interposes functions of the C library that make one system call each: counts the call and forwards it.
#include "harness/system_calls.hpp"

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

/// Returns the C library's function.
template <class Function>
Function* original(const char* name)
{
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
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
    int epoll_wait(int poll, epoll_event* events, int most, int timeout)
    {
        static const auto wait = original<decltype(epoll_wait)>("epoll_wait");
        ++calls.count;
        return wait(poll, events, most, timeout);
    }

    int epoll_ctl(int poll, int operation, int descriptor, epoll_event* event) noexcept
    {
        static const auto control = original<decltype(epoll_ctl)>("epoll_ctl");
        ++calls.count;
        return control(poll, operation, descriptor, event);
    }

    int poll(pollfd* descriptors, nfds_t count, int timeout)
    {
        static const auto wait = original<decltype(poll)>("poll");
        ++calls.count;
        return wait(descriptors, count, timeout);
    }

    int timerfd_settime(int timer, int flags, const itimerspec* value, itimerspec* old) noexcept
    {
        static const auto set = original<decltype(timerfd_settime)>("timerfd_settime");
        ++calls.count;
        return set(timer, flags, value, old);
    }

    ssize_t getrandom(void* out, size_t size, unsigned flags)
    {
        static const auto draw = original<decltype(getrandom)>("getrandom");
        ++calls.count;
        return draw(out, size, flags);
    }

    /// For timers and event descriptors. Sockets aren't read with it.
    ssize_t read(int descriptor, void* out, size_t size)
    {
        static const auto get = original<decltype(read)>("read");
        ++calls.count;
        return get(descriptor, out, size);
    }

    ssize_t write(int descriptor, const void* bytes, size_t size)
    {
        static const auto put = original<decltype(write)>("write");
        ++calls.count;
        return put(descriptor, bytes, size);
    }

    ssize_t send(int socket, const void* bytes, size_t size, int flags)
    {
        static const auto put = original<decltype(send)>("send");
        ++calls.count;
        return counted(put(socket, bytes, size, flags), calls.sent);
    }

    ssize_t sendmsg(int socket, const msghdr* message, int flags)
    {
        static const auto put = original<decltype(sendmsg)>("sendmsg");
        ++calls.count;
        return counted(put(socket, message, flags), calls.sent);
    }

    ssize_t recv(int socket, void* out, size_t size, int flags)
    {
        static const auto get = original<decltype(recv)>("recv");
        ++calls.count;
        return counted(get(socket, out, size, flags), calls.received);
    }

    ssize_t recvmsg(int socket, msghdr* message, int flags)
    {
        static const auto get = original<decltype(recvmsg)>("recvmsg");
        ++calls.count;
        return counted(get(socket, message, flags), calls.received);
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
