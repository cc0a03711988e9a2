// SPDX-License-Identifier: BSL-1.0
// Counts what is taken from the heap, whichever function takes it.
#pragma once

#include <cstdint>

namespace redlock::test
{

/// How often this thread has asked the heap for memory so far.
std::uint64_t allocations_of_this_thread() noexcept;

} // namespace redlock::test
