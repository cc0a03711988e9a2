// SPDX-License-Identifier: BSL-1.0
// Counts heap allocations and deallocations by any function.
#pragma once

#include <cstdint>

namespace redlock::test
{

/// Returns the number of allocations made by this thread.
std::uint64_t allocations_of_this_thread() noexcept;

/// Returns the bytes that this thread has allocated and not freed, including the overhead of the C library. Negative if
/// it has freed memory that another thread allocated.
std::int64_t heap_of_this_thread() noexcept;
/// Returns the maximum of `heap_of_this_thread` since the peak was last reset.
std::int64_t heap_peak_of_this_thread() noexcept;
/// Resets the peak to the current value.
void forget_heap_peak() noexcept;

} // namespace redlock::test
