// SPDX-License-Identifier: BSL-1.0
// The machine under a measurement, and the one CPU to which it is confined.
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
    int cpu = 0;        // On which everything ran.
    double load = 0;    // Of the last minute, before the measurement: what else ran.
};

/// Everything but the server and the CPU.
machine_info describe_machine();

/// Confines this process, and every child that it starts meanwhile, to one CPU: the last that it may use, if none is
/// given. On a small virtual machine it costs more to wake an idle CPU than to take a whole lock, and how much varies.
class cpu_pinning
{
  public:
    explicit cpu_pinning(std::optional<int> wanted);
    cpu_pinning(const cpu_pinning&) = delete;
    cpu_pinning& operator=(const cpu_pinning&) = delete;
    /// All those again that it might use before.
    ~cpu_pinning();

    int number() const noexcept { return number_; }

  private:
    cpu_set_t before_{};
    int number_ = 0;
};

} // namespace redlock::bench
