// SPDX-License-Identifier: BSL-1.0
// The figures of the section contention, with their goals.
#pragma once

#include "harness/contention_rounds.hpp"
#include "harness/figures.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// Returns the share of the grants that the client without pauses got, of two.
figure greedy_share(const contention_rounds& textbook, const contention_rounds& redlock);

/// The row of a table: how many clients compete, and which goals apply.
struct contention_row
{
    std::size_t clients;
    bool has_wait_goals = false;    // Longest wait and release to grant.
    bool has_command_goals = false; // Rounds and commands per grant.
    bool has_rate_goal = false;     // Time per grant.
    double max_hand_over = 0;       // Release to grant, as a multiple of a lone client's acquire.
    std::size_t masters = 0;
};

/// Compared with the textbook.
std::vector<figure> contention_costs(
    const contention_rounds& textbook, const contention_rounds& redlock, const contention_row& row);
std::vector<figure> contention_fairness(const contention_rounds& textbook, const contention_rounds& redlock);

/// Compared with a client that is alone and pauses.
std::vector<figure>
against_alone(const contention_rounds& alone, const contention_rounds& redlock, const contention_row& row);
/// Compared with a client that is alone and doesn't pause.
figure against_full_rate(
    const contention_rounds& alone, const contention_rounds& redlock, const contention_row& row);

/// Compared with redlock. The peer may have fewer rounds.
std::vector<figure> peer_contention(const contention_rounds& all, const contention_rounds& peer);

extern const std::string_view start_note;
extern const std::string_view alone_note;
extern const std::string_view peers_note;

} // namespace redlock::bench
