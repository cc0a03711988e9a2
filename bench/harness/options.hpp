// SPDX-License-Identifier: BSL-1.0
// What the bench is asked for on its command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock::bench
{

/// How long the trials of kept leases go on.
struct trial_options
{
    std::chrono::seconds rolling{60}; // With masters that are killed, one after the other.
    std::size_t hung_runs = 100;
    std::size_t races = 100'000;
};

struct options
{
    std::size_t masters = 5;
    std::size_t rounds = 7;                               // Of each client, by turns.
    std::size_t pairs = 2000;                             // Of acquire and release in a round.
    std::vector<std::size_t> kept{1000, 10'000, 100'000}; // How many leases are kept, one after the other.
    std::chrono::milliseconds keep_for{22'000};           // For longer than two extensions are apart.
    trial_options trials;
    std::chrono::milliseconds contend_for{2000}; // In a round of clients that want the same resource.
    std::string server = "redis-server";
    std::optional<int> cpu;
    std::string results = "build/bench/results"; // A directory, which is made.
    std::string base;                            // The results.json of an earlier run; empty for none.
    std::vector<std::string> only; // The sections that are measured; empty for all but the peers.
    bool peers = false;            // These as well.
    bool quick = false;            // The defaults above were those of a first look.
    bool help = false;
};

} // namespace redlock::bench
