// SPDX-License-Identifier: BSL-1.0
// Whose turn it is at the terminal: ours or the child's.
#pragma once

#include <sys/types.h>

namespace redlock::cli
{

/// The terminal on stdin, if there is one to share. A process group in the background can't read from it, and the
/// child has a group of its own: so it is handed to the child while that runs.
///
/// Not in a pipeline (stdout is a pipe): a pager at its end is in our group, and needs the terminal as well.
class terminal
{
  public:
    terminal();

    /// Whether it may be handed over, and is ours at this moment.
    bool is_ours() const noexcept;
    /// Whether it was handed over and not taken back.
    bool is_given() const noexcept { return given_to_ != -1; }
    /// Makes the group the one that reads and gets the keys' signals. Nothing happens if somebody else has it.
    void give_to(pid_t group) noexcept;
    /// Makes it ours again, if the group still has it.
    void take_back() noexcept;

  private:
    bool shared_;
    pid_t given_to_ = -1;
};

} // namespace redlock::cli
