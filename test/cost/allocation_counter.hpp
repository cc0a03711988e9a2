// SPDX-License-Identifier: BSL-1.0
// Counts what is taken from the heap, whichever function takes it, and what is given back.
#pragma once

#include <cstdint>

namespace redlock::test
{

/// How often this thread has asked the heap for memory so far.
std::uint64_t allocations_of_this_thread() noexcept;

/// How many bytes this thread has taken and not given back, those included that the C library keeps or
/// rounds up to. Less than nothing if it gave back what another one took.
std::int64_t heap_of_this_thread() noexcept;
/// The most that it was since the peak was last forgotten.
std::int64_t heap_peak_of_this_thread() noexcept;
/// The peak is what there is now.
void forget_heap_peak() noexcept;

} // namespace redlock::test
