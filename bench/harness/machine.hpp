// SPDX-License-Identifier: BSL-1.0
// The machine that is measured, and the restriction to one CPU.
#pragma once

#include <optional>
#include <string>

#include <sched.h>

namespace redlock::bench
{

struct machine_info
{
    std::string processor;
    long cores = 0;
    std::string kernel;
    std::string compiler;
    std::string boost;
    std::string server; // Name and version of the masters.
    int cpu = 0;        // To which the process was restricted.
    double load = 0;    // The load average of the minute before the measurement.
};

/// Returns all members but the server and the CPU.
machine_info describe_machine();

/// Restricts this process, and every child that it starts meanwhile, to one CPU: by default the last one that it
/// may use. On a small virtual machine it costs more to wake an idle CPU than to acquire a lock, and that cost
/// varies a lot.
class cpu_pinning
{
  public:
    explicit cpu_pinning(std::optional<int> wanted);
    cpu_pinning(const cpu_pinning&) = delete;
    cpu_pinning& operator=(const cpu_pinning&) = delete;
    /// Restores the previous mask.
    ~cpu_pinning();

    int number() const noexcept { return number_; }

  private:
    cpu_set_t before_{};
    int number_ = 0;
};

} // namespace redlock::bench
