// SPDX-License-Identifier: BSL-1.0
// One client process: its execution context, its clock, its lock manager, and its workers.
#pragma once

#include "chance.hpp"
#include "event_check.hpp"
#include "keep_rules.hpp"
#include "observer_client.hpp"
#include "simulation/pending_handlers.hpp"
#include "simulation/virtual_environment.hpp"
#include "trace_numbers.hpp"
#include "worker.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

class cluster_run;

/// An operation that was begun. It must complete exactly once.
struct call
{
    explicit call(action its_kind) : what{its_kind} {}

    action what;
    bool cancelled = false;
    bool done = false;
    boost::asio::cancellation_signal cancel{};
};
using call_ptr = std::shared_ptr<call>;

/// Thrown by handlers of users.
struct handler_failure
{
};

class process : public std::enable_shared_from_this<process>
{
  public:
    process(cluster_run& cluster, int number, std::uint64_t seed);
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process();

    cluster_run& cluster() noexcept { return cluster_; }
    int number() const noexcept { return number_; }
    const std::string& name() const noexcept { return name_; }
    virtual_environment& environment() noexcept { return *environment_; }
    const virtual_environment& environment() const noexcept { return *environment_; }
    const std::shared_ptr<virtual_environment>& shared_environment() const noexcept { return environment_; }
    clock::time_point now() const noexcept { return environment_->now(); }
    boost::asio::io_context& context() noexcept { return *io_; }
    /// The executor of a part of the program that is busy at times. Only while the process is up.
    boost::asio::any_io_executor other_executor() { return callers_->get_executor(); }
    /// Returns true in a handler that runs there.
    bool on_other_executor() { return callers_->get_executor().running_in_this_thread(); }
    /// Only while the process is up.
    lock_manager& locks() noexcept { return *locks_; }

    /// Makes the manager and starts the workers.
    void start();
    /// Makes the manager, without workers.
    void open() { make_manager(); }
    /// Makes it an operator's. Its manager is idle, and uses plain mode.
    void operate()
    {
        operates_ = true;
        make_manager();
    }
    bool operates() const noexcept { return operates_; }
    bool up() const noexcept { return io_.has_value(); }
    /// Its managers use guarded mode.
    bool guarded() const noexcept;
    /// How many managers it has had.
    int managers() const noexcept { return managers_; }
    bool paused() const noexcept { return paused_; }
    /// The number of pauses so far, including those of the other executor.
    std::size_t pauses() const noexcept { return pauses_; }
    /// When the last one began or ended, by its clock.
    clock::time_point last_pause() const noexcept { return last_pause_; }
    /// Runs one handler. Returns false if none was ready.
    bool step(chance& picks);

    // ---- What happens to it.
    /// Stops running handlers. The clock advances, and incoming data waits.
    void pause() noexcept
    {
        paused_ = true;
        note_pause();
    }
    /// Pauses after a number of steps, between two handlers.
    void pause_after(std::size_t steps) noexcept { steps_to_pause_ = steps; }
    /// Calls `what` once, when the grant that completes a quorum arrives.
    void at_grant(std::function<void()> what) { at_grant_ = std::move(what); }
    void granted()
    {
        if (const auto what = std::exchange(at_grant_, {}))
        {
            what();
        }
    }
    /// Runs no handler of the other executor for this long.
    void keep_busy(clock::duration length);
    void resume() noexcept
    {
        last_pause_ = paused_ ? now() : last_pause_;
        paused_ = false;
        if (busy_until_ > clock::time_point{})
        {
            note_pause();
        }
        busy_until_ = {};
        steps_to_pause_.reset();
    }
    /// Ends the process at once. Its sockets are closed, or reset, which loses what was under way.
    void kill(bool resets);
    /// Shuts its manager down, and makes a new one if `then_anew`.
    void shut_down(bool then_anew);
    bool closing() const noexcept { return closing_; }
    /// How many managers were shut down or destroyed so far, or are being so.
    std::size_t endings() const noexcept { return endings_; }
    /// It has a manager that wasn't shut down.
    bool usable() const noexcept { return up() && !closing_ && !ended_; }
    /// The manager was shut down without an error, and not replaced.
    bool was_shut_down() const noexcept { return was_shut_down_; }
    /// The result of the last shutdown.
    error_code shutdown_error() const noexcept { return shutdown_error_; }
    /// How long the last shutdown took, in true time.
    clock::duration shutdown_took() const noexcept { return shutdown_took_; }
    /// Destroys its manager without a shutdown, and makes a new one.
    void drop_manager();
    /// Gives a master another name in the lists of its next managers, that of this server. Null for the right one.
    void mistype(std::size_t master, sim_master* server);
    /// Cancels one of the running operations.
    void cancel_one(std::size_t which);
    void cancel(const call_ptr& what);
    /// Lets the workers finish what they do and begin nothing new.
    void stop();

    // ---- For its workers.
    /// Calls `what` in this process after `length` of true time.
    void after(clock::duration length, std::function<void()> what);
    /// Begins an operation, which may be cancelled after a number of steps.
    call_ptr begin(action what, std::optional<std::size_t> resource = {});
    void end(const call_ptr& done, error_code error);
    /// Passes the report to the observer client, if there is one.
    void read(const report& told)
    {
        if (observer_client_)
        {
            observer_client_->read(told);
        }
    }
    /// The observer must be notified of this event.
    void expect_event(expected_event what, const std::string& owner_id)
    {
        if (!closing_ && !was_shut_down_)
        {
            events_.expect(what, owner_id);
        }
    }
    /// Waits as an Asio timer does.
    template <class Token>
    auto async_wait(clock::duration length, Token&& token)
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            [this, length](auto handler) { wait(length, std::move(handler)); }, token);
    }

    // ---- For the oracle.
    /// Of its present manager.
    std::shared_ptr<detail::manager_handle> handle() const noexcept { return handle_.lock(); }
    event_check& events() noexcept { return events_; }
    const event_check& events() const noexcept { return events_; }
    keep_rules& keeping() noexcept { return keeping_; }
    /// Its manager was never shut down or dropped, so it must release every outstanding key.
    bool orderly() const noexcept { return orderly_; }
    /// Destroys the manager.
    void end_manager();
    /// Its connections have ended.
    bool is_disconnected() const noexcept { return environment_->streams() == 0; }
    /// Returns what is left after that in words; empty if nothing is.
    std::string leftovers();
    void say(action what, error_code error = {}) { say(what, action_phase::whole, error, {}); }

  private:
    using waiting_handler = boost::asio::any_completion_handler<void(error_code)>;

    bool run_one(boost::asio::io_context& in);
    void wait(clock::duration length, waiting_handler handler);
    void when_up(clock::duration length, std::function<void()> what);
    void make_manager();
    void on_event(int manager, const event& what);
    void check_keeping(const event& what);
    void note_pause() noexcept
    {
        ++pauses_;
        last_pause_ = now();
    }
    void count_down();
    void say(action what, action_phase phase, error_code error, std::optional<std::size_t> resource);

    cluster_run& cluster_;
    int number_;
    std::string name_;
    chance draws_;
    std::shared_ptr<virtual_environment> environment_;
    std::optional<boost::asio::io_context> callers_;
    std::optional<boost::asio::io_context> io_;
    pending_handlers* handlers_;
    std::optional<lock_manager> locks_;
    std::vector<std::unique_ptr<worker>> workers_;
    std::optional<observer_client> observer_client_;
    event_check events_;
    keep_rules keeping_;
    int managers_ = 0;
    std::optional<std::size_t> mistyped_; // A master.
    bool operates_ = false;
    bool paused_ = false;
    std::size_t pauses_ = 0;
    clock::time_point last_pause_ = clock::time_point::min(); // By its clock.
    std::optional<std::size_t> steps_to_pause_;
    clock::time_point busy_until_{};
    std::function<void()> at_grant_;
    bool stopping_ = false;
    bool closing_ = false;
    std::size_t endings_ = 0;
    bool was_shut_down_ = false;
    bool ended_ = false; // Its manager was shut down, and not replaced.
    clock::duration shutdown_took_{};
    error_code shutdown_error_;
    std::weak_ptr<detail::manager_handle> handle_; // Of the present manager.
    bool orderly_ = true;

    struct countdown
    {
        std::size_t steps;
        std::weak_ptr<call> of;
    };
    std::vector<countdown> to_cancel_;
    std::vector<std::weak_ptr<call>> calls_;
    std::size_t running_ = 0;
};

} // namespace redlock::test
