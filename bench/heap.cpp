// SPDX-License-Identifier: BSL-1.0
// How much the C library has given away of the heap.
#include "heap.hpp"

#include <malloc.h>

namespace redlock::bench
{

std::size_t heap_in_use()
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

} // namespace redlock::bench
