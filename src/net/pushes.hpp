// SPDX-License-Identifier: BSL-1.0
// Limits the unsolicited pushes that a server sends on one connection.
#pragma once

#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// Counts the unsolicited pushes: those that nobody asked for, and messages to clients that don't wait. A few are ignored,
/// and each question to the queue pays for one, because its client may have stopped waiting when the message arrives. A
/// server that sends more is disconnected, because each costs processing time.
class push_guard
{
  public:
    /// The number of unsolicited pushes that ends the connection.
    static constexpr std::size_t max_unsolicited = 16;
    static constexpr std::string_view complaint = "it sent 16 unsolicited pushes";

    void on_unsolicited() noexcept { ++unsolicited_; }
    void on_question() noexcept { unsolicited_ -= unsolicited_ > 0 && !exceeded() ? 1U : 0U; }
    bool exceeded() const noexcept { return unsolicited_ >= max_unsolicited; }

  private:
    std::size_t unsolicited_ = 0;
};

} // namespace redlock::net
