// SPDX-License-Identifier: BSL-1.0
// What the model is run on: scenarios that hold, and ablations that don't.
#pragma once

#include "explorer.hpp"

#include <string>
#include <vector>

namespace model
{

// A scenario in which every invariant has to hold.
struct proof
{
    scenario where;
    std::uint64_t walks = 0; // 0: all states are visited.
};

// A protocol without one rule, and a schedule that breaks an invariant then, but none with the rule.
struct ablation
{
    std::string name;
    rule without;
    scenario where;
    std::vector<action> schedule;
    invariant breaks;
    checks wanted = checks::promises;
};

// A protocol without one rule, which the search of all states has to find by itself.
struct searched
{
    scenario where;
    rule without;
};

std::vector<proof> exhaustive_proofs();
std::vector<searched> searched_ablations();
std::vector<proof> random_proofs();
std::vector<ablation> ablations();

} // namespace model
