// SPDX-License-Identifier: BSL-1.0
// How fit a master is to keep locks: what it says of itself, and how fast it answers.
#pragma once

#include <redlock/error.hpp>
#include <redlock/observer.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace redlock
{

/// Something about a master that is less than it should be.
struct found_risk
{
    risk what;
    std::string detail; ///< What was seen, escaped.
};

/// One master, examined. A plain value.
struct master_examination
{
    /// Its address, without credentials.
    std::string name;
    /// Why it can't be used; empty if it can.
    error_code reason;
    /// What it said to that, escaped; often empty. Never holds a password.
    std::string detail;

    // Of one that can be used:

    /// "redis 7.0.15"; empty if it forbids INFO.
    std::string server;
    /// Its run id; empty likewise.
    std::string run_id;
    std::vector<found_risk> risks;
    /// The shortest and the median of its round trips, as this process sees them; 0 if none was answered.
    std::chrono::nanoseconds fastest_round_trip{0};
    std::chrono::nanoseconds median_round_trip{0};
    /// What it keeps when it is restarted: the values of the settings with these names; empty if it doesn't tell.
    std::optional<std::string> appendonly;
    std::optional<std::string> appendfsync;
    std::optional<std::string> save;
};

} // namespace redlock
