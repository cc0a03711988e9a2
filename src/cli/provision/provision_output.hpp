// SPDX-License-Identifier: BSL-1.0
// The output of `redlock provision`: what a run will do, and what it has found and done.
#pragma once

#include "cli/common/exit_code.hpp"

#include <redlock/provision.hpp>

#include <boost/json/object.hpp>

#include <cstddef>
#include <string>

namespace redlock::cli
{

/// Returns what a run will do, with the wait if it is known.
std::string intention(const provision_options& options, const config& masters);

/// Returns a line for each master, and one for all of them. `members` is how many masters the group has.
std::string text_of(const provision_report& of, std::size_t members);
/// Returns the same as one object.
boost::json::object json_of(const provision_report& of);

/// Returns the last line: what the run has achieved, and what to do next.
std::string conclusion_of(const provision_report& of, std::size_t members);

exit_code exit_code_of(const provision_report& of);

} // namespace redlock::cli
