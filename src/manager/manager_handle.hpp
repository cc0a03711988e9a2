// SPDX-License-Identifier: BSL-1.0
// The thread-safe access to a manager's strand, which ends with the manager or its execution context.
#pragma once

#include <redlock/clock.hpp>

#include "manager/lease_state.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace redlock::manager
{

class lock_service;

} // namespace redlock::manager

namespace redlock::runtime
{

class queued_step;

} // namespace redlock::runtime

namespace redlock::detail
{

namespace asio = boost::asio;

/// The handle by which leases, pending initiations and cancellation slots refer to the manager.
///
/// They may outlive the manager and its execution context, so they never refer to either directly. A handle is
/// created with the manager, opened once and closed by whichever comes first: the destruction of the manager, the end
/// of its shutdown, or the destruction of the execution context. Calls that come later complete with `closed`.
///
/// A call from a foreign thread is queued with the mutex held, and `lose_context` takes the mutex before the memory of
/// the context goes. So the call either is queued, and destroyed with the context if nothing runs it, or finds the handle
/// closed. No foreign thread ever owns the manager, because it might have to destroy the manager after the context: only a
/// step on the strand and `lose_context` give it up.
///
/// It also takes back the state of leases that are destroyed without a release (`release_abandoned`): a step on the strand
/// collects them and releases their keys. The memory is pooled here.
///
/// Thread-safe. The mutexes are never held while user code runs or user objects are destroyed, except for the executor.
class manager_handle : public std::enable_shared_from_this<manager_handle>
{
  public:
    manager_handle(asio::any_io_executor executor, std::shared_ptr<const runtime::environment> outside);
    manager_handle(const manager_handle&) = delete;
    manager_handle& operator=(const manager_handle&) = delete;
    ~manager_handle();

    /// Registers for the destruction of the executor's context. Must be called before `open`.
    void watch_context();
    /// Sets the manager.
    void open(std::shared_ptr<manager::lock_service> service) noexcept;
    /// Removes the manager. Called on the strand.
    void close() noexcept;
    /// Refuses calls from now on, and aborts the manager in a step. Does nothing if the handle has been closed.
    void abort();
    /// Called when the execution context is destroyed: closes the handle and drops the executor.
    void lose_context() noexcept;

    /// Where a call reaches the manager: see manager/enter.hpp.
    struct entrance
    {
        bool open;                                   // False if the handle has been closed.
        std::shared_ptr<manager::lock_service> here; // Null unless this thread runs the executor's context.
    };
    entrance find_entrance() const noexcept;
    /// Queues a step for the manager, and sets the pointer to it that the step uses. Returns false if the handle has been
    /// closed: the caller keeps the step, also if there is no memory.
    bool post(std::unique_ptr<runtime::queued_step>& step, manager::lock_service*& service);
    /// Returns the manager's executor, or the system executor if the context has been destroyed.
    asio::any_io_executor executor() const noexcept;
    clock::time_point now() const noexcept { return outside_->now(); }
    /// Returns a number that is unique among the operations of the manager.
    std::uint64_t next_operation() noexcept
    {
        return last_operation_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    /// Takes back a lease that is destroyed without a release, for release in the background. Never throws.
    void release_abandoned(lease_state& held) noexcept;
    /// Tries again to release such leases, if there was no memory for it. Called on the strand.
    void retry_abandoned();

    /// Returns a lease state from the pool, or a new one.
    lease_state* take_lease_state();
    void recycle(lease_state& unused) noexcept;

  private:
    using lease_state_list = boost::intrusive::list<lease_state, boost::intrusive::base_hook<handle_hook>>;

    bool is_open() const noexcept { return service_ != nullptr && !aborting_; }
    void post_collection();
    void collect(manager::lock_service& service);

    static constexpr std::size_t max_pooled = 4096;

    mutable std::mutex mutex_;
    asio::any_io_executor executor_;
    std::shared_ptr<const runtime::environment> outside_;
    std::shared_ptr<manager::lock_service> service_;
    bool aborting_ = false; // A step that aborts the manager is queued.
    lease_state_list abandoned_;
    bool collecting_ = false;
    std::mutex pool_mutex_;
    lease_state_list pool_;
    std::size_t pooled_ = 0;
    std::atomic<std::uint64_t> last_operation_{0};
};

} // namespace redlock::detail

namespace redlock::manager
{

namespace asio = boost::asio;

using detail::manager_handle;

} // namespace redlock::manager
