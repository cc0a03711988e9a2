// SPDX-License-Identifier: BSL-1.0
// The shared parts of the integration tests: a manager on real masters with its own event loop, and calls that wait for
// their result, so that tests read from top to bottom.
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
#include <exception>
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

/// Longer than anything in these tests takes, even on a slow machine.
inline constexpr std::chrono::seconds patience{60};

/// A ttl that no test outlasts.
inline constexpr std::chrono::milliseconds long_ttl{600'000};

/// Thrown if something didn't end within `patience`.
class stuck : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/// Waits for the result of a future for at most `patience`. Throws `stuck`, or the exception of the future.
template <class T>
T take(std::future<T> future, std::string_view what)
{
    if (future.wait_for(patience) != std::future_status::ready)
    {
        throw stuck{"still not done after a minute: " + std::string{what}};
    }
    return future.get();
}

/// An io_context that runs on its own threads until this object is destroyed.
class event_loop
{
  public:
    explicit event_loop(std::size_t threads = 1);
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;
    ~event_loop();

    asio::io_context& context() { return context_; }
    /// Stops the io_context and joins the threads.
    void stop();
    /// Runs a coroutine on the io_context to its end.
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
    everything, ///< All of them.
    masters     ///< Events of masters only: the report of a round is large, and there may be many rounds.
};

/// Records the events of a manager, for a test to wait for.
class event_log
{
  public:
    explicit event_log(log_of what) : what_{what} {}
    /// The observer must not outlive this object.
    redlock::observer observer();
    std::vector<redlock::event> events() const;
    /// Waits until the condition holds for the recorded events. Throws `stuck`.
    void wait_until(
        const std::function<bool(const std::vector<redlock::event>&)>& condition, std::string_view what);
    /// Waits until a master has come up (gone down) for the n-th time. Throws `stuck`.
    void wait_for_up(std::size_t master, std::size_t times = 1);
    void wait_for_down(std::size_t master, std::size_t times = 1);
    /// Returns how often a master has come up.
    std::size_t times_up(std::size_t master) const;
    /// Returns why a master went down or couldn't be connected to, in order.
    std::vector<redlock::master_down> downs_of(std::size_t master) const;

  private:
    log_of what_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<redlock::event> events_;
};

/// How a cancelled operation ends.
inline const error_code aborted = asio::error::operation_aborted;

/// The result of an acquire.
struct acquired
{
    error_code error;
    redlock::lease lease;
    redlock::report report;
};

/// The result of an extend or a release.
struct finished
{
    error_code error;
    redlock::report report;
};

// Each blocks the calling thread until the operation ends. Throws `stuck`.
acquired acquire(redlock::lock_manager& locks, std::string resource, acquire_options options);
acquired try_acquire(redlock::lock_manager& locks, std::string resource, try_options options);
finished extend(redlock::lease& held, std::chrono::milliseconds ttl);
finished release(redlock::lease& held);
error_code shut_down(redlock::lock_manager& locks);

// Each starts an operation and returns the future of its result, for `take`.
std::future<acquired>
start_acquire(redlock::lock_manager& locks, std::string resource, acquire_options options);
std::future<acquired>
start_try_acquire(redlock::lock_manager& locks, std::string resource, try_options options);
std::future<finished> start_extend(redlock::lease& held, std::chrono::milliseconds ttl);
std::future<finished> start_release(redlock::lease& held);
std::future<error_code> start_shutdown(redlock::lock_manager& locks);

/// A manager with its own event loop, and its events.
class client
{
  public:
    /// Replaces the observer of the options.
    explicit client(redlock::config options, std::size_t threads = 1, log_of what = log_of::everything);
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    redlock::lock_manager& locks() { return *locks_; }
    event_log& events() { return events_; }
    event_loop& loop() { return loop_; }
    /// Waits until every master is up. Throws `stuck`.
    void wait_for_masters();
    /// Destroys the manager.
    void destroy_manager() { locks_.reset(); }

    acquired acquire(std::string resource, acquire_options options)
    {
        return test::acquire(*locks_, std::move(resource), options);
    }
    acquired try_acquire(std::string resource, try_options options)
    {
        return test::try_acquire(*locks_, std::move(resource), options);
    }
    /// Acquires with a single round. Throws with the report if it fails.
    redlock::lease win(std::string resource, std::chrono::milliseconds ttl = long_ttl);

  private:
    std::size_t masters_;
    event_log events_;
    event_loop loop_;
    std::optional<redlock::lock_manager> locks_;
};

/// Returns all text of an event.
std::string describe(const redlock::event& what);

/// Returns the address of a server, with its credentials.
redlock::master address_of(const server& at, int database = 0);
/// The same through another port: that of a proxy.
redlock::master address_behind(int port, const server& at, int database = 0);
std::vector<redlock::master> addresses_of(const std::vector<server>& servers);

/// Returns options that can reach these masters: with the CA to trust. The times are the library's defaults.
redlock::config reaching(std::vector<redlock::master> masters);
redlock::config reaching(const std::vector<server>& servers);

/// Returns options with times that suit a loaded machine, so that a vote fails only if the test makes it fail.
redlock::config unhurried(std::vector<redlock::master> masters);
redlock::config unhurried(const std::vector<server>& servers);

/// Repeats until the condition is true; `pacemaker` makes each repetition wait a little. False if it doesn't become
/// true within `patience`.
bool comes_true(server& pacemaker, const std::function<bool()>& condition);
/// Waits until this server no longer has the key. False if it still has it after `patience`.
bool goes_away(server& at, const std::string& key);
/// Waits until the key has this value on this server. False if it doesn't within `patience`.
bool becomes(server& at, const std::string& key, std::string_view value);
/// Throws the server's message if the answer isn't OK.
void expect_ok(const reply& answer);
/// Changes the rights of the user of the clients, by rules of ACL SETUSER.
void change_user(server& at, std::initializer_list<std::string_view> rules);
/// Returns a number from INFO; 0 if it is missing.
long long info_number(server& at, std::string_view section, std::string_view field);
/// Returns how often a server has run a command, such as "evalsha".
long long calls_of(server& at, std::string_view command);
/// Returns the words of a text, without the white space between them.
std::vector<std::string> words_of(const std::string& text);
/// Converts the exception_ptr of a finished operation to its error; empty for success.
error_code error_of(const std::exception_ptr& thrown);

} // namespace redlock::test
