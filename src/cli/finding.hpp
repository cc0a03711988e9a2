// SPDX-License-Identifier: BSL-1.0
// What can be wrong with a master, in words for a person: what was seen, what it means for a lock, what to do.
#pragma once

#include <redlock/examination.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

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
};

/// "note", "warning", "failure".
std::string_view to_string(severity value) noexcept;

/// All of one master: why it can't be used; or its risks, how fast it answers, and what it keeps at a restart.
/// `all` are the masters it is one of: where it is the same server as another, that one is named.
std::vector<finding> findings_of(const master_examination& one, const std::vector<master_examination>& all);

} // namespace redlock::cli
