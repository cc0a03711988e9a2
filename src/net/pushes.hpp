// SPDX-License-Identifier: BSL-1.0
// The pushes that a server sends on one connection: which were asked for, and how many were not.
#pragma once

#include "resp/value.hpp"

#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// Whether this connection asked for a push. It subscribes to nothing, so it asked for none.
inline bool was_asked_for(const resp::reply&) noexcept
{
    return false;
}

/// Counts the pushes that were not asked for. A few are skipped; a server that goes on sending them costs time with each,
/// and is disconnected.
class push_guard
{
  public:
    /// The last of them ends the connection.
    static constexpr std::size_t max_unasked = 16;
    static constexpr std::string_view complaint = "it sent 16 pushes that were not asked for";

    void on_push(const resp::reply& push) noexcept { unasked_ += was_asked_for(push) ? 0U : 1U; }
    bool exceeded() const noexcept { return unasked_ >= max_unasked; }

  private:
    std::size_t unasked_ = 0;
};

} // namespace redlock::net
