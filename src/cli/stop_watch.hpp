// SPDX-License-Identifier: BSL-1.0
// A process that watches over a stopped command while redlock itself is stopped, and can't.
#pragma once

#include <redlock/clock.hpp>

#include <vector>

#include <sys/types.h>

namespace redlock::cli
{

/// Kills the stopped processes before the lease's validity ends, unless redlock goes on before that. A shell's `fg`
/// continues redlock and the command at the same moment, so that a look at the lease would come too late.
class stop_watch
{
  public:
    /// Starts watching. `stopped` are to be sent SIGKILL at `end`. Does nothing if there can't be another process: the
    /// look at the lease after the stop is then all there is.
    stop_watch(clock::time_point end, const std::vector<pid_t>& stopped) noexcept;
    stop_watch(const stop_watch&) = delete;
    stop_watch& operator=(const stop_watch&) = delete;
    ~stop_watch() { finish(); }

    /// Ends the watch. Returns whether the processes have been sent SIGKILL.
    bool finish() noexcept;

  private:
    pid_t watcher_ = -1;
    bool killed_ = false;
};

} // namespace redlock::cli
