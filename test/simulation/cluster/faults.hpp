// SPDX-License-Identifier: BSL-1.0
// The faults of a simulated run.
#pragma once

#include "chance.hpp"
#include "trace_numbers.hpp"

#include <vector>

namespace redlock::test
{

class cluster_run;

// Whether a fault keeps or breaks the assumptions.
inline constexpr bool keeps = false;
inline constexpr bool breaks = true;

/// Draws how long a fault lasts: shorter than every timeout, or longer.
inline clock::duration some_time(chance& draws)
{
    using namespace std::chrono_literals;
    return draws.one_in(3) ? draws.between(10ms, 150ms) : draws.between(0ms, 20ms);
}

/// One kind of fault.
struct fault
{
    fault_number number;
    const char* name;
    const char* what; // A description for --faults.
    /// Exclusion can't be promised: a master loses keys, or clocks drift apart further than allowed.
    bool breaks_assumptions;
    /// Injects the fault and schedules its end.
    void (*inject)(cluster_run&, chance&);
};

/// All kinds of faults, in a fixed order.
const std::vector<fault>& all_faults();

std::vector<fault> network_faults();
std::vector<fault> master_faults();
std::vector<fault> process_faults();

} // namespace redlock::test
