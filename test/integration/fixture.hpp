// SPDX-License-Identifier: BSL-1.0
// What the integration tests share: a manager over real masters in an event loop of its own, and calls that wait
// for their result, so that tests read from top to bottom.
#pragma once

#include "support/server.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace asio = boost::asio;

/// However slow the machine is, nothing in these tests takes so long.
inline constexpr std::chrono::seconds patience{60};

/// A ttl that no test lives to see the end of.
inline constexpr std::chrono::milliseconds long_ttl{600'000};

/// Something didn't end within `patience`.
class stuck : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/// The result of a future, waited for at most `patience`. Throws `stuck`, and what the future throws.
template <class T>
T take(std::future<T> future, std::string_view what)
{
    if (future.wait_for(patience) != std::future_status::ready)
    {
        throw stuck{"still not done after a minute: " + std::string{what}};
    }
    return future.get();
}

/// An io_context that runs on threads of its own until this goes.
class event_loop
{
  public:
    explicit event_loop(std::size_t threads = 1);
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;
    ~event_loop();

    asio::io_context& context() { return context_; }
    /// Ends the threads where they are.
    void stop();
    /// Runs a coroutine to its end there.
    template <class T>
    T run(asio::awaitable<T> work, std::string_view what = "a coroutine of the test")
    {
        return take(asio::co_spawn(context_, std::move(work), asio::use_future), what);
    }

  private:
    asio::io_context context_;
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    std::vector<std::thread> threads_;
};

/// Which events are kept.
enum class log_of
{
    everything, ///< All.
    masters     ///< Those of masters only: a round's report is large, and there may be many.
};

/// The events of a manager, for a test to wait for.
class event_log
{
  public:
    explicit event_log(log_of what) : what_{what} {}
    /// Must not outlive this.
    redlock::observer observer();
    std::vector<redlock::event> events() const;
    /// Waits until this is true of the events so far. Throws `stuck`.
    void wait_until(
        const std::function<bool(const std::vector<redlock::event>&)>& condition, std::string_view what);
    /// Waits until a master has come up (gone down) for the n-th time. Throws `stuck`.
    void wait_for_up(std::size_t master, std::size_t times = 1);
    void wait_for_down(std::size_t master, std::size_t times = 1);
    /// How often a master has come up so far.
    std::size_t times_up(std::size_t master) const;
    /// Why a master went down, or couldn't be connected to, in order.
    std::vector<redlock::master_down> downs_of(std::size_t master) const;

  private:
    log_of what_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<redlock::event> events_;
};

/// How an acquire ended.
struct acquired
{
    error_code error;
    redlock::lease lease;
    redlock::report report;
};

/// How an extend or a release ended.
struct finished
{
    error_code error;
    redlock::report report;
};

// Each waits for the operation's end, on the calling thread. Throws `stuck`.
acquired acquire(redlock::lock_manager& locks, std::string resource, acquire_options options);
acquired try_acquire(redlock::lock_manager& locks, std::string resource, try_options options);
finished extend(redlock::lease& held, std::chrono::milliseconds ttl);
finished release(redlock::lease& held);
error_code shut_down(redlock::lock_manager& locks);

// Each starts an operation and returns its result to come: `take` it.
std::future<acquired>
start_acquire(redlock::lock_manager& locks, std::string resource, acquire_options options);
std::future<acquired>
start_try_acquire(redlock::lock_manager& locks, std::string resource, try_options options);
std::future<finished> start_extend(redlock::lease& held, std::chrono::milliseconds ttl);
std::future<finished> start_release(redlock::lease& held);
std::future<error_code> start_shutdown(redlock::lock_manager& locks);

/// A manager in an event loop of its own, with its events.
class client
{
  public:
    /// The observer is the client's.
    explicit client(redlock::config options, std::size_t threads = 1, log_of what = log_of::everything);
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    redlock::lock_manager& locks() { return *locks_; }
    event_log& events() { return events_; }
    event_loop& loop() { return loop_; }
    /// Waits until every master is up. Throws `stuck`.
    void wait_for_masters();
    /// Ends the manager, as its destructor does.
    void destroy_manager() { locks_.reset(); }

    acquired acquire(std::string resource, acquire_options options)
    {
        return test::acquire(*locks_, std::move(resource), options);
    }
    acquired try_acquire(std::string resource, try_options options)
    {
        return test::try_acquire(*locks_, std::move(resource), options);
    }
    /// One round that must be won. Throws with the report if it isn't.
    redlock::lease win(std::string resource, std::chrono::milliseconds ttl = long_ttl);

  private:
    std::size_t masters_;
    event_log events_;
    event_loop loop_;
    std::optional<redlock::lock_manager> locks_;
};

/// Everything that an event says.
std::string describe(const redlock::event& what);

/// Where a server is and how to log in to it.
redlock::master address_of(const server& at, int database = 0);
/// The same server, reached through another port: that of a proxy in between.
redlock::master address_behind(int port, const server& at, int database = 0);
std::vector<redlock::master> addresses_of(const std::vector<server>& servers);

/// Options with what is needed to speak to these masters: whom to trust. The times are the library's own.
redlock::config reaching(std::vector<redlock::master> masters);
redlock::config reaching(const std::vector<server>& servers);

/// Options with times that a loaded machine keeps, so that a vote only fails where the test makes it fail.
redlock::config unhurried(std::vector<redlock::master> masters);
redlock::config unhurried(const std::vector<server>& servers);

/// Asks again and again whether something is so; between two looks `pacemaker` makes us wait a little. False if it
/// isn't so within `patience`.
bool comes_true(server& pacemaker, const std::function<bool()>& condition);
/// Waits until a key is gone from this server. False if it still is there after `patience`.
bool goes_away(server& at, const std::string& key);
/// Waits until a key has this value on this server. False if it hasn't after `patience`.
bool becomes(server& at, const std::string& key, std::string_view value);
/// Throws what the server said if it isn't OK.
void expect_ok(const reply& answer);
/// Gives and takes rights of the user as whom clients log in, with words of ACL SETUSER.
void change_user(server& at, std::initializer_list<std::string_view> rules);
/// A number from INFO: 0 when it isn't there.
long long info_number(server& at, std::string_view section, std::string_view field);

} // namespace redlock::test
