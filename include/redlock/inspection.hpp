// SPDX-License-Identifier: BSL-1.0
// The result of an inspection: the holder of a resource, as seen by each master.
#pragma once

#include <redlock/detail/export.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>
#include <redlock/vote.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock
{

/// The state of a resource on one master.
struct master_inspection
{
    /// The reason why the master gave no answer; empty if it did.
    error_code reason;
    /// The server's message, escaped; often empty. If the key has another type: "WRONGTYPE ...". Never contains a
    /// password.
    short_text detail;
    /// True if the key exists. A key of any type and value prevents the resource from being acquired there.
    bool has_key = false;
    /// The value of the key, escaped, and truncated if it isn't an owner id of this library. Empty if there is no
    /// key, the value is empty, or the key has another type (such as a hash or list).
    short_text owner_id;
    /// The remaining time to live, by the master's clock. Empty if there is no key, or one that never expires.
    std::optional<std::chrono::milliseconds> expires_in;
};

/// The state of a resource on all masters, as returned by `lock_manager::async_inspect`. A plain value.
class REDLOCK_API inspection
{
  public:
    inspection() = default;

    /// Returns the state on each master, in the order of `config::masters`.
    std::span<const master_inspection> masters() const noexcept { return masters_; }
    /// Returns the master's address without credentials, such as "redis://10.0.0.1:6379". `index` must be less than
    /// `masters().size()`.
    std::string_view name(std::size_t index) const;
    /// Returns the number of masters that make a quorum.
    std::size_t quorum() const noexcept { return quorum_of(masters_.size()); }
    /// Returns the number of masters that answered.
    std::size_t answered() const noexcept;
    /// Returns the number of masters on which the key exists, with any owner and type.
    std::size_t taken() const noexcept;
    /// Returns the number of masters on which the key has this owner id.
    std::size_t count(std::string_view owner_id) const noexcept;
    /// Returns the owner id that is the value of the key on a quorum of masters, or an empty string if there is none.
    /// The view is valid for the lifetime of this object.
    std::string_view holder() const noexcept;

  private:
    friend struct detail::access;

    inspection(std::shared_ptr<const detail::master_names> names, std::vector<master_inspection> masters)
        : names_{std::move(names)}, masters_{std::move(masters)}
    {
    }

    std::shared_ptr<const detail::master_names> names_;
    std::vector<master_inspection> masters_;
};

} // namespace redlock
