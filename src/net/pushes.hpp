// SPDX-License-Identifier: BSL-1.0
// Limits the unsolicited pushes that a server sends on one connection.
#pragma once

#include "resp/value.hpp"

#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// Returns whether the connection asked for a push. It has no subscriptions, so it asked for none.
inline bool was_requested(const resp::reply&) noexcept
{
    return false;
}

/// Counts the unsolicited pushes. A few are ignored; a server that continues to send them is disconnected, because each
/// costs processing time.
class push_guard
{
  public:
    /// The number of unsolicited pushes that ends the connection.
    static constexpr std::size_t max_unsolicited = 16;
    static constexpr std::string_view complaint = "it sent 16 unsolicited pushes";

    void on_push(const resp::reply& push) noexcept { unsolicited_ += was_requested(push) ? 0U : 1U; }
    bool exceeded() const noexcept { return unsolicited_ >= max_unsolicited; }

  private:
    std::size_t unsolicited_ = 0;
};

} // namespace redlock::net
