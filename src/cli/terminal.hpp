// SPDX-License-Identifier: BSL-1.0
// The controlling terminal, which the command shares with redlock and with the script or shell that runs it.
#pragma once

#include <optional>

#include <termios.h>

namespace redlock::cli
{

/// The terminal, if there is one: found through /dev/tty or the standard descriptors, whichever of those are redirected.
class terminal
{
  public:
    /// Remembers its settings.
    terminal();
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;
    ~terminal();

    bool is_there() const noexcept { return descriptor_ >= 0; }
    /// Puts back what a command that was killed has left: its raw mode, and a foreground group that is gone. Nothing if
    /// another living group is in the foreground.
    void restore() const noexcept;

  private:
    int descriptor_ = -1;
    bool was_ours_ = false; // Our group was in the foreground.
    std::optional<termios> settings_;
};

} // namespace redlock::cli
