// SPDX-License-Identifier: BSL-1.0
// Limits the unsolicited pushes that a server sends on one connection.
#pragma once

#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// Counts the unsolicited pushes. A few are ignored; a server that continues to send them is disconnected, because each
/// costs processing time. A message to a client that has stopped waiting isn't one of them: each release within the grace
/// wakes the same client, so many may arrive before its leave has.
class push_guard
{
  public:
    /// The number of unsolicited pushes that ends the connection.
    static constexpr std::size_t max_unsolicited = 16;
    static constexpr std::string_view complaint = "it sent 16 unsolicited pushes";

    void on_unsolicited() noexcept { ++unsolicited_; }
    bool exceeded() const noexcept { return unsolicited_ >= max_unsolicited; }

  private:
    std::size_t unsolicited_ = 0;
};

} // namespace redlock::net
