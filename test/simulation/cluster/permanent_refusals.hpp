// SPDX-License-Identifier: BSL-1.0
// Whether an acquire may give up ahead of its wait, because masters refuse permanently.
#pragma once

#include <redlock/redlock.hpp>

#include <exception>

namespace redlock::test
{

/// Returns true if so many masters refuse permanently that no quorum is left.
bool is_hopeless(const report& told);
/// The same for the exception of an acquire, whose text doesn't count the masters: if any master refuses permanently.
bool is_hopeless(const std::exception_ptr& thrown);

} // namespace redlock::test
