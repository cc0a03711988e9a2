// SPDX-License-Identifier: BSL-1.0
// The result of an examination: whether a master is suited to keep locks, by its settings, its clock and its speed.
#pragma once

#include <redlock/arming_policy.hpp>
#include <redlock/error.hpp>
#include <redlock/guarded_step.hpp>
#include <redlock/observer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock
{

/// A configuration or clock problem of a master that weakens locking.
struct master_issue
{
    risk what;
    std::string detail; ///< What was observed, escaped.
    /// The error with which a command of the arming was refused; empty for other problems.
    error_code reason{};
};

/// What a master is to a manager in guarded mode.
struct guarded_examination
{
    /// The reason why it doesn't vote; empty if it is armed, and refuses no command of a vote.
    error_code reason;
    /// The group that its marker names, 16 hexadecimal digits; empty if it has none.
    std::string group;
    /// Its number in that group, from 1, and the longest ttl; 0 if it has no group.
    std::uint32_t seat = 0;
    std::chrono::milliseconds max_ttl{0};
    /// The time until this manager tries to arm it. Empty if no quarantine is waited for.
    std::optional<std::chrono::milliseconds> armed_in;
    /// The server's message for `reason`, escaped; often empty.
    std::string detail{};
    /// The number of masters of that group, and its policy; 0 if it has no group.
    std::uint32_t masters = 0;
    arming_policy policy = arming_policy::clocks;
    /// What to do next, if it doesn't vote.
    guarded_advice advice{};
};

/// The examination of one master. A plain value.
struct master_examination
{
    /// The address, without credentials.
    std::string name;
    /// The reason why the master isn't connected; empty if it is.
    error_code reason;
    /// The server's message for that reason, escaped; often empty. Never contains a password.
    std::string detail;

    // If it is connected:

    /// Name and version, as in "redis 7.0.15"; empty if INFO is forbidden.
    std::string server;
    /// The run id; empty if INFO is forbidden.
    std::string run_id;
    std::vector<master_issue> risks;
    /// The minimum and the median round trip time, as measured by this process; 0 if TIME is forbidden or
    /// wasn't answered.
    std::chrono::nanoseconds fastest_round_trip{0};
    std::chrono::nanoseconds median_round_trip{0};
    /// The persistence settings of these names; empty if CONFIG GET is forbidden or went unanswered.
    std::optional<std::string> appendonly;
    std::optional<std::string> appendfsync;
    std::optional<std::string> save;
    /// In guarded mode only.
    std::optional<guarded_examination> guarded;
};

} // namespace redlock
