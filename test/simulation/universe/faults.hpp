// SPDX-License-Identifier: BSL-1.0
// Everything that can go wrong in a universe.
#pragma once

#include "chance.hpp"
#include "trace_numbers.hpp"

#include <vector>

namespace redlock::test
{

class universe;

// Of the assumptions.
inline constexpr bool keeps = false;
inline constexpr bool breaks = true;

/// How long a fault lasts: short against every timeout, or long.
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
    const char* what; // That happens.
    /// Whether exclusion can't be promised any more: a master loses keys, or clocks drift apart further than allowed.
    bool breaks_assumptions;
    /// Does it, with what it draws, and sees to it that it ends.
    void (*strike)(universe&, chance&);
};

/// All kinds, in one order.
const std::vector<fault>& all_faults();

std::vector<fault> network_faults();
std::vector<fault> master_faults();
std::vector<fault> process_faults();

} // namespace redlock::test
