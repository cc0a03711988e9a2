// SPDX-License-Identifier: BSL-1.0
// An address of this machine that servers don't take for a local one: only with it is protected mode seen at work.
#pragma once

#include "loopback.hpp"

#include <string>

namespace redlock::test
{

/// While it exists, this thread and what it starts are in a separate network, where the loopback interface has an
/// address outside of 127.0.0.0/8 as well. Where that isn't allowed, the address is one that the machine has anyway.
class foreign_address
{
  public:
    /// Throws if neither can be had.
    foreign_address();
    foreign_address(const foreign_address&) = delete;
    foreign_address& operator=(const foreign_address&) = delete;
    /// The thread goes back.
    ~foreign_address();

    const std::string& text() const noexcept { return text_; }

  private:
    unique_fd network_before_; // None if this thread has never left it.
    std::string text_;
};

} // namespace redlock::test
