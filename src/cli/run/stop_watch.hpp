// SPDX-License-Identifier: BSL-1.0
// A process that watches a stopped command while redlock itself is stopped.
#pragma once

#include <redlock/clock.hpp>

#include <vector>

#include <sys/types.h>

namespace redlock::cli
{

/// Kills the stopped processes before the lease's validity ends, unless redlock is continued earlier. A shell's `fg`
/// continues redlock and the command at the same moment, so a check of the lease after it would come too late.
class stop_watch
{
  public:
    /// Starts a process that sends SIGKILL to `stopped` at `end`. Does nothing if no process can be created; then only
    /// redlock's check of the lease after the stop remains.
    stop_watch(clock::time_point end, const std::vector<pid_t>& stopped) noexcept;
    stop_watch(const stop_watch&) = delete;
    stop_watch& operator=(const stop_watch&) = delete;
    ~stop_watch() { finish(); }

    /// Ends the watch. Returns true if it was past `end`: the processes may have been sent SIGKILL.
    bool finish() noexcept;

  private:
    clock::time_point end_;
    pid_t watcher_ = -1;
};

} // namespace redlock::cli
