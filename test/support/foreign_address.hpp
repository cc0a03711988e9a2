// SPDX-License-Identifier: BSL-1.0
// An address of this machine that servers don't consider local: a test of protected mode needs it.
#pragma once

#include "loopback.hpp"

#include <string>

namespace redlock::test
{

/// While this object exists, its thread and the processes it starts are in a separate network, in which the loopback
/// interface also has an address outside of 127.0.0.0/8. If that isn't permitted, another address of the machine is
/// used.
class foreign_address
{
  public:
    /// Throws if neither is available.
    foreign_address();
    foreign_address(const foreign_address&) = delete;
    foreign_address& operator=(const foreign_address&) = delete;
    /// Returns the thread to its previous network.
    ~foreign_address();

    const std::string& text() const noexcept { return text_; }

  private:
    unique_fd network_before_; // Empty if this thread has never left it.
    std::string text_;
};

} // namespace redlock::test
