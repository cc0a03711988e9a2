// SPDX-License-Identifier: BSL-1.0
// The way from any thread to a manager's strand, and the end of that way when the manager or its context
// goes.
#pragma once

#include <redlock/clock.hpp>

#include "manager/holding.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace redlock::manager
{

namespace asio = boost::asio;

class lock_service;

/// What leases, deferred operations and cancellation slots hold instead of the manager: it may outlive
/// everything.
///
/// Thread-safe. Its lock is never held while anything of the user's runs or is destroyed.
class gate : public std::enable_shared_from_this<gate>
{
  public:
    gate(asio::any_io_executor executor, std::shared_ptr<const env::environment> outside);
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    ~gate();

    /// The manager behind it, from now on; and the end of both when the executor's context goes.
    void open(std::shared_ptr<lock_service> service);
    /// The manager has gone. What is behind the gate is returned.
    std::shared_ptr<lock_service> close() noexcept;
    /// The execution context goes: nothing may touch its executor any more.
    void lose_context() noexcept;

    /// Null once the manager has gone.
    std::shared_ptr<lock_service> service() const noexcept;
    /// The system's once the context has gone.
    asio::any_io_executor executor() const noexcept;
    clock::time_point now() const noexcept { return outside_->now(); }
    /// A number that no other operation of the manager has.
    std::uint64_t next_operation() noexcept
    {
        return last_operation_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    /// A lease goes without having been released: the manager does it. Never throws or blocks for long.
    void hand_back(holding& held) noexcept;

    /// A holding from the pool, or a new one.
    holding* take_holding();
    void recycle(holding& unused) noexcept;

  private:
    using holding_list = boost::intrusive::list<holding, boost::intrusive::base_hook<gate_hook>>;

    void collect(lock_service& service);

    static constexpr std::size_t most_pooled = 4096;

    mutable std::mutex mutex_;
    asio::any_io_executor executor_;
    std::shared_ptr<const env::environment> outside_;
    std::shared_ptr<lock_service> service_;
    holding_list handed_back_;
    bool collecting_ = false;
    holding_list pool_;
    std::size_t pooled_ = 0;
    std::atomic<std::uint64_t> last_operation_{0};
};

} // namespace redlock::manager
