// SPDX-License-Identifier: BSL-1.0
// What the masters said, in lines for a person: one below the other, each with the master's name.
#pragma once

#include <redlock/inspection.hpp>
#include <redlock/report.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace redlock::cli
{

/// The votes of a round, each on a line of its own that begins with a line end. Empty without votes.
std::string votes_of(const report& round);

/// What each master says of the resource, likewise. `ours` is the owner id of our own lease; empty if there is none.
std::string holders_of(const inspection& found, std::string_view ours = {});

/// In one sentence: who holds the resource, and for how long, or how many masters say so.
std::string holder_of(const inspection& found);

/// Why a lease was lost: the votes of the last extension that failed, if one is known, and what the masters say now.
std::string
why_lost(const std::optional<report>& failed_extension, const inspection& found, std::string_view ours);

} // namespace redlock::cli
