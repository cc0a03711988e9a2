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
    std::uint64_t states; // Visited at most; 0: walks.
    std::uint64_t walks = 0;
    bool complete = true; // All states have to be visited.
};

// A protocol without one rule, and a schedule that breaks a promise then, but not with the rule.
struct ablation
{
    std::string name;
    rule without;
    scenario where;
    std::vector<action> schedule;
    invariant breaks;
};

std::vector<proof> proofs();
std::vector<ablation> ablations();

} // namespace model
