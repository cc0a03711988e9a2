// SPDX-License-Identifier: BSL-1.0
// A simulated run for tests: masters, managers on a virtual clock, and the results of the operations that a test began.
#pragma once

#include "sim_master.hpp"
#include "virtual_environment.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test
{

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// The result of an operation, and the means to cancel it.
struct outcome
{
    bool done = false;
    error_code error;
    error_code why;            // Of a loss.
    std::exception_ptr thrown; // Of a body that ran under a lock; `error` is the code of a `system_error`.
    redlock::lease lease;
    redlock::report report;
    clock::time_point at{};
    asio::cancellation_signal cancel;
};
using outcome_ptr = std::shared_ptr<outcome>;

/// The behaviour of a body under a lock, and its result.
struct job
{
    bool called_later = false; // The body is started by a posted handler, so time may pass before it begins.
    clock::duration works = std::chrono::hours{1000}; // Unless it is cancelled.
    clock::duration stops_in{0};       // The time that it needs to stop after its cancellation.
    bool ignores_cancellation = false; // It can't be cancelled.
    std::exception_ptr throws{};       // At its end.

    redlock::lease* held = nullptr; // While it runs.
    std::size_t starts = 0;
    bool ended = false;
    bool was_valid = false; // When the body first checked.
    clock::time_point cancelled_at{};
    clock::time_point ended_at{};
};

class simulation
{
  public:
    explicit simulation(std::size_t masters, std::uint64_t seed = 1);
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    ~simulation();

    virtual_world& world() const noexcept { return environment_->world(); }
    clock::time_point now() const noexcept { return world().now(); }
    sim_master& master(std::size_t index) { return *masters_.at(index); }
    const std::vector<std::unique_ptr<sim_master>>& masters() const noexcept { return masters_; }
    const virtual_environment& environment() const noexcept { return *environment_; }
    std::shared_ptr<const runtime::environment> shared_environment() const { return environment_; }
    asio::any_io_executor executor() { return io_->get_executor(); }

    /// Makes the address of one master lead to another one; with the same index, to itself again.
    void put(std::size_t address, std::size_t index);

    /// Options with all masters in them, for a test to change.
    config options() const;
    /// The same. Connections that don't answer are kept, not replaced.
    config patient_options() const;
    lock_manager make_manager(config with);
    lock_manager make_manager() { return make_manager(options()); }
    /// Creates a manager in an environment of the test.
    lock_manager make_manager(config with, std::shared_ptr<const runtime::environment> outside);
    /// Creates a manager and runs until it is connected to all masters.
    lock_manager make_connected_manager(config with);
    lock_manager make_connected_manager() { return make_connected_manager(options()); }

    // Each of these begins an operation, which makes no progress before the next step.
    outcome_ptr acquire(lock_manager& locks, std::string resource, acquire_options with);
    outcome_ptr try_acquire(lock_manager& locks, std::string resource, try_options with);
    outcome_ptr acquire_kept(lock_manager& locks, std::string resource, keep_options with);
    /// `what` must outlive the operation.
    outcome_ptr with_lock(lock_manager& locks, std::string resource, keep_options with, job& what);
    outcome_ptr extend(redlock::lease& held, std::chrono::milliseconds ttl);
    outcome_ptr release(redlock::lease& held);
    outcome_ptr wait_lost(redlock::lease& held);
    outcome_ptr shut_down(lock_manager& locks);

    /// Runs one handler, or the next event not after `limit` if none is ready. Returns false if nothing was run.
    bool step(clock::time_point limit = clock::time_point::max());
    /// Runs everything up to a time.
    void run_until(clock::time_point when);
    void run_for(clock::duration length) { run_until(now() + length); }
    /// Runs until the condition holds. Returns false if it doesn't within `bound`.
    bool run_until(const std::function<bool()>& holds, clock::duration bound);
    bool finish(const outcome_ptr& what, clock::duration bound = 1min)
    {
        return run_until([&] { return what->done; }, bound);
    }
    /// Runs until no handler is ready and nothing is in flight in the network. Timers stay armed.
    void run_until_idle();
    /// Destroys the execution context with everything in it.
    void destroy_context() { io_.reset(); }

    /// Disables the wait queue, so that only the random delay separates two rounds of an acquire.
    void forbid_queues();
    /// Returns how often the masters received such a command, in total.
    std::size_t count(std::string_view what) const;
    /// Returns the number of keys on all masters that are up.
    std::size_t keys() const;
    /// Runs until nothing is in flight and no key is left. Returns false if that doesn't happen within `bound`.
    bool run_until_no_keys(clock::duration bound = 10s);

    /// For bodies: waits in virtual time. Returns false if it was cancelled.
    asio::awaitable<bool> pause(clock::duration length);

  private:
    asio::awaitable<void> work(job& what, redlock::lease& held);
    auto status_into(const outcome_ptr& to);
    auto lease_into(const outcome_ptr& to);

    std::shared_ptr<virtual_environment> environment_;
    std::vector<std::unique_ptr<sim_master>> masters_;
    std::optional<asio::io_context> io_{std::in_place};
};

} // namespace redlock::test
