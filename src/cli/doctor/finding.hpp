// SPDX-License-Identifier: BSL-1.0
// Findings about a master: what was observed, what it means for locks, and what to do about it.
#pragma once

#include "cli/doctor/probe.hpp"

#include <redlock/examination.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// Everything that the doctor knows about one master.
struct master_facts
{
    master_examination examined;
    /// The user that acquires locks; "default" if none was given.
    std::string user;
    /// The prefix of the keys of locks.
    std::string key_prefix;
    /// True for a unix socket and a loopback address.
    bool is_local = false;
    /// True if it answers inspections of clients without a password.
    bool is_open = false;
    /// The result of the probe; empty if there was none.
    std::optional<probe> probed;
};

/// The library's default node timeout for a ttl of half a second or more (`config::node_timeout`).
inline constexpr std::chrono::milliseconds default_node_timeout{50};

/// The severity of a finding.
enum class severity : std::uint8_t
{
    note,    ///< Information. The master is good.
    warning, ///< The master can be used, with a restriction.
    failure  ///< The master can't be used.
};

/// One finding. Its sentences have no full stop.
struct finding
{
    severity level;
    /// A short, stable name for programs: "eviction".
    std::string_view kind;
    std::string what;    ///< What was observed: "maxmemory-policy is volatile-lru".
    std::string meaning; ///< What it means for locks.
    std::string advice;  ///< What to do about it.
    /// The measured time that completes `what`, if there is one. Findings that differ only in it are reported together.
    std::optional<std::chrono::nanoseconds> measured{};

    /// Returns `what` with the measured time.
    std::string seen() const;
};

/// Formats a duration in milliseconds: "0.21 ms".
std::string in_ms(std::chrono::nanoseconds value);

/// "note", "warning", "failure".
std::string_view to_string(severity value) noexcept;

/// Returns whether an examination has found this risk.
bool has_risk(const master_examination& one, risk what);

/// Returns the findings of one master: why it can't be used, or else its risks, the failures of the probe, slow
/// answers, an open default user and weak persistence. `all` are all masters; a finding about a server that is given
/// twice names the other address.
std::vector<finding> findings_of(const master_facts& one, const std::vector<master_facts>& all);

} // namespace redlock::cli
