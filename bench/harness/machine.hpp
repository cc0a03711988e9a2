// SPDX-License-Identifier: BSL-1.0
// The machine under a measurement, and the one CPU to which it is confined.
#pragma once

#include <optional>
#include <string>

#include <sched.h>

namespace redlock::bench
{

struct machine
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
machine this_machine();

/// Confines this process, and every child that it starts meanwhile, to one CPU: the last that it may use, if none is
/// given. On a small virtual machine it costs more to wake an idle CPU than to take a whole lock, and how much varies.
class one_cpu
{
  public:
    explicit one_cpu(std::optional<int> wanted);
    one_cpu(const one_cpu&) = delete;
    one_cpu& operator=(const one_cpu&) = delete;
    /// All those again that it might use before.
    ~one_cpu();

    int number() const noexcept { return number_; }

  private:
    cpu_set_t before_{};
    int number_ = 0;
};

} // namespace redlock::bench
