// SPDX-License-Identifier: BSL-1.0
// Votes and inspections as text, with a line for each master.
#pragma once

#include <redlock/inspection.hpp>
#include <redlock/report.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace redlock::cli
{

/// Returns the votes of a round, each preceded by a line end. Empty if there are none.
std::string votes_of(const report& round);

/// Returns each master's answer about the resource, in the same form. `ours` is the owner id of the caller's lease;
/// empty if there is none.
std::string holders_of(const inspection& found, std::string_view ours = {});

/// Describes a position in the queue, such as "2 clients ahead".
std::string position_in_words(const queue_position& position);

/// Describes in one sentence which owner holds the resource and for how long, or how many masters answered.
std::string holder_of(const inspection& found);

/// Describes why a lease was lost: the votes of the last failed extension, if there is one, and the masters' present
/// answers.
std::string
why_lost(const std::optional<report>& failed_extension, const inspection& found, std::string_view ours);

} // namespace redlock::cli
