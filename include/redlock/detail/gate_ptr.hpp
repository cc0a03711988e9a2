// SPDX-License-Identifier: BSL-1.0
// What the face knows of the parts behind it: their names.
#pragma once

#include <redlock/detail/export.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <utility>

namespace redlock::manager
{

class gate;
class holding;

} // namespace redlock::manager

namespace redlock::detail
{

/// The way from any thread to a manager, which may have gone: src/manager/gate.hpp.
using gate_ptr = std::shared_ptr<manager::gate>;

/// The manager's executor; the system's once its execution context has gone.
REDLOCK_API boost::asio::any_io_executor executor_of(const gate_ptr& gate) noexcept;

/// A counted reference to what a lease stands for. It keeps the memory, not the lock.
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

/// The executor of a lease's manager; the system's for an empty lease.
REDLOCK_API boost::asio::any_io_executor executor_of(const holding_ptr& holding) noexcept;

} // namespace redlock::detail
