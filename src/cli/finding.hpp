// SPDX-License-Identifier: BSL-1.0
// What can be wrong with a master, in words for a person: what was seen, what it means for a lock, what to do.
#pragma once

#include "cli/probe.hpp"

#include <redlock/examination.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// Everything that the doctor knows of one master.
struct master_facts
{
    master_examination examined;
    /// As whom locks are acquired: "default" where no user was given.
    std::string user;
    /// With what their keys begin.
    std::string key_prefix;
    /// Whether this machine is its own: a unix socket, or a loopback address.
    bool is_local = false;
    /// Whether it answers questions about locks to clients that give no password.
    bool is_open = false;
    /// What became of a lock of our own on it; empty if there was none.
    std::optional<probe> probed;
};

/// What a vote may take by default (config::node_timeout, for a ttl of half a second or more).
inline constexpr std::chrono::milliseconds default_node_timeout{50};

/// How much a finding weighs.
enum class severity : std::uint8_t
{
    note,    ///< Worth knowing; the master is good all the same.
    warning, ///< The master is less than it should be, though it can be used.
    failure  ///< The master can't be used.
};

/// One thing that was found. Sentences without their full stop.
struct finding
{
    severity level;
    /// A short name that stays, for programs: "eviction".
    std::string_view kind;
    std::string what;    ///< What was seen: "maxmemory-policy is volatile-lru".
    std::string meaning; ///< What that means for a lock.
    std::string advice;  ///< What to do about it.
    /// The time that `what` ends with, where it does: masters that differ in nothing else have the same finding.
    std::optional<std::chrono::nanoseconds> measured{};

    /// `what` with its time.
    std::string seen() const;
};

/// In milliseconds: "0.21 ms".
std::string in_ms(std::chrono::nanoseconds value);

/// "note", "warning", "failure".
std::string_view to_string(severity value) noexcept;

/// All of one master: why it can't be used; or its risks, how fast it answers, who may use it, what a lock lacks there,
/// and what it keeps at a restart. `all` are the masters it is one of: where it is the same server as another, that one
/// is named.
std::vector<finding> findings_of(const master_facts& one, const std::vector<master_facts>& all);

} // namespace redlock::cli
