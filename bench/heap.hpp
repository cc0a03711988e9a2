// SPDX-License-Identifier: BSL-1.0
// How much the C library has given away of the heap.
#pragma once

#include <cstddef>

namespace redlock::bench
{

/// In bytes, with what it keeps beside each piece. Of the main thread: others may have heaps of their own.
std::size_t heap_in_use();

} // namespace redlock::bench
