// SPDX-License-Identifier: BSL-1.0
// The settings of a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock::bench
{

/// The length of the section trials.
struct trial_options
{
    std::chrono::seconds rolling{60}; // Of restarting the masters, one after the other.
    std::size_t hung_runs = 100;
    std::size_t races = 100'000;
};

struct options
{
    std::size_t masters = 5;
    std::size_t rounds = 7;                               // Of each client; the clients alternate.
    std::size_t pairs = 2000;                             // Of acquire and release, per round.
    std::vector<std::size_t> kept{1000, 10'000, 100'000}; // Numbers of leases with automatic extension.
    std::chrono::milliseconds keep_for{22'000};           // Longer than the interval between two extensions.
    trial_options trials;
    std::chrono::milliseconds contend_for{800}; // Per round of the section contention.
    std::string server = "redis-server";
    std::optional<int> cpu;
    std::string results = "build/bench/results"; // Created if it doesn't exist.
    std::string base;                            // The results.json of an earlier run, or empty.
    std::vector<std::string> only;               // If empty, all sections run except peers.
    bool peers = false;                          // Run the section peers as well.
    bool quick = false;                          // Set by --quick, which has other defaults.
};

} // namespace redlock::bench
