// SPDX-License-Identifier: BSL-1.0
// The controlling terminal, which the command shares with redlock and with the script or shell that runs it.
#pragma once

#include <optional>

#include <termios.h>

namespace redlock::cli
{

/// The terminal, if there is one. It is found through /dev/tty or one of the standard descriptors.
class terminal
{
  public:
    /// Saves the terminal's settings.
    terminal();
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;
    ~terminal();

    bool is_there() const noexcept { return descriptor_ >= 0; }
    /// Restores the settings that a killed command has changed, and replaces its foreground group if that no longer
    /// exists. Does nothing if another existing group is in the foreground.
    void restore() const noexcept;

  private:
    int descriptor_ = -1;
    bool was_ours_ = false; // redlock's group was in the foreground.
    std::optional<termios> settings_;
};

} // namespace redlock::cli
