// SPDX-License-Identifier: BSL-1.0
// References from the public API to its implementation, by the names of the classes only.
#pragma once

#include <redlock/detail/export.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <utility>

namespace redlock::detail
{

class manager_handle;
class lease_state;

/// The thread-safe access to a manager, which may have been destroyed: src/manager/manager_handle.hpp.
using manager_handle_ptr = std::shared_ptr<manager_handle>;

/// Returns the manager's executor, or the system executor if the manager's execution context has been destroyed.
REDLOCK_API boost::asio::any_io_executor executor_of(const manager_handle_ptr& handle) noexcept;

/// A counted reference to the state of a lease. It keeps the memory, not the lock.
class REDLOCK_API lease_state_ptr
{
  public:
    lease_state_ptr() noexcept = default;
    explicit lease_state_ptr(lease_state* value) noexcept;
    lease_state_ptr(const lease_state_ptr& other) noexcept;
    lease_state_ptr(lease_state_ptr&& other) noexcept : value_{std::exchange(other.value_, nullptr)} {}
    lease_state_ptr& operator=(lease_state_ptr other) noexcept
    {
        std::swap(value_, other.value_);
        return *this;
    }
    ~lease_state_ptr();

    lease_state* get() const noexcept { return value_; }
    lease_state* operator->() const noexcept { return value_; }
    lease_state& operator*() const noexcept { return *value_; }
    explicit operator bool() const noexcept { return value_ != nullptr; }

  private:
    lease_state* value_ = nullptr;
};

/// Returns the executor of the lease's manager, or the system executor for an empty lease.
REDLOCK_API boost::asio::any_io_executor executor_of(const lease_state_ptr& held) noexcept;

} // namespace redlock::detail
