// SPDX-License-Identifier: BSL-1.0
// Searches a scenario for violations: all states, random walks, or a written schedule.
#pragma once

#include "protocol.hpp"

#include <bitset>
#include <cstdint>
#include <vector>

namespace model
{

struct outcome
{
    invariant broken = invariant::none;
    std::vector<action> trace; // The steps up to the violation.
    std::uint64_t states = 0;  // Different ones, or the steps of walks.
    std::uint64_t walks = 0;
    bool complete = true;                                     // All states within the bounds were visited.
    std::bitset<static_cast<std::size_t>(kind::count)> kinds; // Of the steps that were taken.
    mask issued = 0;                                          // Attempts that had a token in some state.
};

// Visits every state, depth first, and stops at the first violation. A hash of 64 bits stands for a state.
outcome explore(const protocol& model, std::uint64_t max_states);

// Walks from the initial state, each with a seed of its own.
outcome walk(const protocol& model, std::uint64_t first_seed, std::uint64_t walks, int max_steps);

// Takes the steps in their order, without those that aren't possible: what a rule refuses, others may continue.
outcome replay(const protocol& model, const std::vector<action>& steps);

// Leaves out steps for as long as a violation of the same invariant remains.
outcome shorten(const protocol& model, const outcome& found);

} // namespace model
