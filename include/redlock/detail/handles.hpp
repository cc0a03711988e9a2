// SPDX-License-Identifier: BSL-1.0
// References from the public API to its implementation, by the names of the classes only.
#pragma once

#include <redlock/detail/export.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <utility>

namespace redlock::manager
{

class manager_handle;
class holding;

} // namespace redlock::manager

namespace redlock::detail
{

/// The thread-safe access to a manager, which may have been destroyed: src/manager/manager_handle.hpp.
using manager_handle_ptr = std::shared_ptr<manager::manager_handle>;

/// Returns the manager's executor, or the system executor if the manager's execution context has been destroyed.
REDLOCK_API boost::asio::any_io_executor executor_of(const manager_handle_ptr& handle) noexcept;

/// A counted reference to the state of a lease. It keeps the memory, not the lock.
class REDLOCK_API holding_ptr
{
  public:
    holding_ptr() noexcept = default;
    explicit holding_ptr(manager::holding* value) noexcept;
    holding_ptr(const holding_ptr& other) noexcept;
    holding_ptr(holding_ptr&& other) noexcept : value_{std::exchange(other.value_, nullptr)} {}
    holding_ptr& operator=(holding_ptr other) noexcept
    {
        std::swap(value_, other.value_);
        return *this;
    }
    ~holding_ptr();

    manager::holding* get() const noexcept { return value_; }
    manager::holding* operator->() const noexcept { return value_; }
    manager::holding& operator*() const noexcept { return *value_; }
    explicit operator bool() const noexcept { return value_ != nullptr; }

  private:
    manager::holding* value_ = nullptr;
};

/// Returns the executor of the lease's manager, or the system executor for an empty lease.
REDLOCK_API boost::asio::any_io_executor executor_of(const holding_ptr& holding) noexcept;

} // namespace redlock::detail
