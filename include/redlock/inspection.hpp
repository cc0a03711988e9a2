// SPDX-License-Identifier: BSL-1.0
// Who holds a resource, as each master sees it.
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

/// What one master says of a resource.
struct master_inspection
{
    /// Why there is no answer; empty if there is one.
    error_code reason;
    /// What the server said to it, also where its key is of another type: "WRONGTYPE ..."; often empty. Never holds a
    /// password.
    short_text detail;
    /// Whether it has a key for the resource. A key of any type and value keeps the resource from being locked there.
    bool has_key = false;
    /// The owner id that its key has, escaped and cut off if it is none of this library's. Empty without a key, with an
    /// empty one, and with one of another type (a hash, a list).
    short_text owner_id;
    /// For how long yet, by the master's own clock. Empty without a key, and for one that never expires.
    std::optional<std::chrono::milliseconds> expires_in;
};

/// Who holds a resource, as each master sees it. A plain value.
class REDLOCK_API inspection
{
  public:
    inspection() = default;
    /// Called by the manager.
    inspection(std::shared_ptr<const report::master_names> names, std::vector<master_inspection> masters)
        : names_{std::move(names)}, masters_{std::move(masters)}
    {
    }

    /// In the order in which the masters were configured.
    std::span<const master_inspection> masters() const noexcept { return masters_; }
    /// The master's address without credentials: "redis://10.0.0.1:6379". `index` is below `masters().size()`.
    std::string_view name(std::size_t index) const;
    /// How many masters make a quorum.
    std::size_t quorum() const noexcept { return quorum_of(masters_.size()); }
    /// How many masters gave an answer.
    std::size_t answered() const noexcept;
    /// How many masters have a key, of whatever owner and type.
    std::size_t taken() const noexcept;
    /// How many masters have a key of this owner.
    std::size_t count(std::string_view owner_id) const noexcept;
    /// The owner id that a quorum of the masters has: who holds the resource. Empty if nobody does. Good as long as
    /// this is.
    std::string_view holder() const noexcept;

  private:
    std::shared_ptr<const report::master_names> names_;
    std::vector<master_inspection> masters_;
};

} // namespace redlock
