// SPDX-License-Identifier: BSL-1.0
// Resolves a host name on a detached thread, so that a lookup that hangs delays nothing else.
#include "io/name_lookup.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <list>
#include <netdb.h>
#include <netinet/in.h>
#include <new>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace redlock::io
{

namespace
{

namespace asio = boost::asio;
using addresses = std::vector<asio::ip::address>;

/// Blocks all signals on this thread. A new thread inherits the mask; the application's signals must not be delivered
/// to a thread that it doesn't know.
class all_signals_blocked
{
  public:
    all_signals_blocked() noexcept
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    all_signals_blocked(const all_signals_blocked&) = delete;
    all_signals_blocked& operator=(const all_signals_blocked&) = delete;
    ~all_signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

error_code resolver_error(int failed, int system_error) noexcept
{
    switch (failed)
    {
    case 0:
        return {};
    case EAI_AGAIN:
        return asio::error::host_not_found_try_again;
    case EAI_FAIL:
        return asio::error::no_recovery;
    case EAI_MEMORY:
        return asio::error::no_memory;
    case EAI_SYSTEM:
        return {system_error, boost::system::system_category()};
    default:
        return asio::error::host_not_found;
    }
}

void append(addresses& out, const sockaddr& address)
{
    if (address.sa_family == AF_INET)
    {
        sockaddr_in four{};
        std::memcpy(&four, &address, sizeof four);
        out.push_back(asio::ip::address_v4{ntohl(four.sin_addr.s_addr)});
    }
    else if (address.sa_family == AF_INET6)
    {
        sockaddr_in6 six{};
        std::memcpy(&six, &address, sizeof six);
        asio::ip::address_v6::bytes_type bytes{};
        std::copy(std::begin(six.sin6_addr.s6_addr), std::end(six.sin6_addr.s6_addr), bytes.begin());
        out.push_back(asio::ip::address_v6{bytes, six.sin6_scope_id});
    }
}

} // namespace

/// The lookups in progress. Never destroyed, because their threads may outlive `main`.
struct name_lookup::registry
{
    static registry& instance()
    {
        static registry* const only = new registry;
        return *only;
    }

    registry()
    {
        // A forked child has none of the threads. It must not wait for them, nor inherit a locked mutex.
        ::pthread_atfork(
            [] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
            []
            {
                registry& self = instance();
                self.lost_at_fork.splice(self.lost_at_fork.end(), self.in_progress);
                self.lost_at_fork.splice(self.lost_at_fork.end(), self.succeeded);
                self.mutex.unlock();
            });
    }

    /// Returns a slow lookup of this name that has just succeeded, or null. Forgets the older ones.
    std::shared_ptr<name_lookup> kept(const std::string& name, time_point now)
    {
        succeeded.remove_if(
            [now](const auto& each)
            {
                const auto took = each->ended_ - each->began_;
                return now - each->ended_ > std::max<time_point::duration>(kept_for, took);
            });
        const auto found = std::find_if(
            succeeded.rbegin(), succeeded.rend(), [&name](const auto& each) { return each->name_ == name; });
        return found == succeeded.rend() ? nullptr : *found;
    }

    /// Returns the lookup of this name that is in progress, or null if there is none, or if another one has to begin.
    std::shared_ptr<name_lookup> joinable(const std::string& name, time_point now) const
    {
        const auto is_of_name = [&name](const auto& each) { return each->name_ == name; };
        const auto oldest = std::find_if(in_progress.begin(), in_progress.end(), is_of_name);
        const auto newest = std::find_if(in_progress.rbegin(), in_progress.rend(), is_of_name);
        if (newest == in_progress.rend())
        {
            return nullptr;
        }
        const auto age = now - (*newest)->began_;
        const bool has_room = in_progress.size() < max_threads - max_in_progress;
        const bool hangs = has_room && age >= patience && age >= (now - (*oldest)->began_) / 2;
        return hangs ? nullptr : *newest;
    }

    bool is_full(time_point now) const
    {
        const auto recent = std::count_if(
            in_progress.begin(), in_progress.end(),
            [now](const auto& each) { return now - each->began_ < patience; });
        return static_cast<std::size_t>(recent) >= max_in_progress || in_progress.size() >= max_threads;
    }

    std::mutex mutex;
    std::list<std::shared_ptr<name_lookup>> in_progress; // Oldest first.
    std::list<std::shared_ptr<name_lookup>>
        succeeded; // Slow ones, at most `kept_for` before the last call of `kept`.
    std::list<std::shared_ptr<name_lookup>> lost_at_fork; // Kept for leak checkers.
};

name_lookup::name_lookup(const std::string& name, time_point began)
    : name_{name}, began_{began}, done_event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}
{
}

name_lookup::~name_lookup()
{
    if (done_event_ >= 0)
    {
        ::close(done_event_);
    }
}

std::shared_ptr<name_lookup> name_lookup::join(const std::string& name, error_code& why, time_point now)
{
    registry& all = registry::instance();
    const std::lock_guard lock{all.mutex};
    if (std::shared_ptr<name_lookup> known = all.kept(name, now))
    {
        return known;
    }
    if (std::shared_ptr<name_lookup> known = all.joinable(name, now))
    {
        return known;
    }
    if (all.is_full(now))
    {
        why = asio::error::try_again;
        return nullptr;
    }
    const std::shared_ptr<name_lookup> made{new name_lookup{name, now}};
    if (made->done_event_ < 0)
    {
        why = {errno, boost::system::system_category()};
        return nullptr;
    }
    all.in_progress.push_back(made);
    try
    {
        start(made);
    }
    catch (const std::system_error&)
    {
        // Reported as EAGAIN, although trying again doesn't help against a limit of the system.
        all.in_progress.pop_back();
        why = asio::error::no_buffer_space;
        return nullptr;
    }
    return made;
}

void name_lookup::start(std::shared_ptr<name_lookup> lookup)
{
    const all_signals_blocked until_it_runs;
    std::thread thread{[lookup = std::move(lookup)] { lookup->resolve(); }};
    ::pthread_setname_np(thread.native_handle(), "redlock-resolve");
    thread.detach();
}

/// Runs on the lookup's thread, possibly while `exit` destroys static objects, so it must not use any of these.
void name_lookup::resolve() noexcept
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;
    addrinfo* found = nullptr;
    int failed = ::getaddrinfo(name_.c_str(), nullptr, &hints, &found);
    const int system_error = errno;
    addresses list;
    try
    {
        for (const addrinfo* each = found; each != nullptr && list.size() < max_addresses;
             each = each->ai_next)
        {
            append(list, *each->ai_addr);
        }
    }
    catch (const std::bad_alloc&)
    {
        failed = EAI_MEMORY;
    }
    if (found != nullptr)
    {
        ::freeaddrinfo(found);
    }
    if (failed == 0 && list.empty())
    {
        failed = EAI_NONAME;
    }
    finish(failed, system_error, std::move(list));
}

void name_lookup::finish(int failed, int system_error, addresses found) noexcept
{
    std::list<std::shared_ptr<name_lookup>> ended; // Destroyed without the lock.
    {
        const std::lock_guard lock{mutex_};
        failed_ = failed;
        system_error_ = system_error;
        addresses_ = std::move(found);
        done_ = true;
    }
    {
        // Before it is announced, so that a connector that has been notified can't join it again, unless it is kept.
        registry& all = registry::instance();
        const std::lock_guard lock{all.mutex};
        const auto own = std::find_if(
            all.in_progress.begin(), all.in_progress.end(),
            [this](const auto& each) { return each.get() == this; });
        ended_ = std::chrono::steady_clock::now();
        auto& next = failed == 0 && ended_ - began_ >= slow ? all.succeeded : ended;
        next.splice(next.end(), all.in_progress, own);
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        ::write(done_event_, &one, sizeof one); // Doesn't block, because it is the only write.
}

int name_lookup::watch() const noexcept
{
    return ::fcntl(done_event_, F_DUPFD_CLOEXEC, 0);
}

name_lookup::result name_lookup::get() const
{
    const std::lock_guard lock{mutex_};
    if (!done_)
    {
        // This is a forked child. The descriptor is shared with the parent process, which has the result.
        return {asio::error::host_not_found_try_again, {}};
    }
    return {resolver_error(failed_, system_error_), addresses_};
}

} // namespace redlock::io
