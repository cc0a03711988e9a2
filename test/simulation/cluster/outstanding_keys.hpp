// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of a process, as its manager counts them.
#pragma once

#include <cstddef>
#include <optional>

namespace redlock::test
{

class process;

/// Returns the number of keys that the manager of a process counts as outstanding on connected masters; empty if it has
/// been closed. Runs its handlers, so it is for times of rest.
std::optional<std::size_t> outstanding_keys(process& of);

} // namespace redlock::test
