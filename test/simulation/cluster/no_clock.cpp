// SPDX-License-Identifier: BSL-1.0
// Replaces src/api/clock.cpp: nothing in a simulated run may read the real clock.
#include <redlock/clock.hpp>

#include <cstdio>
#include <cstdlib>

namespace redlock
{

clock::time_point clock::now() noexcept
{
    std::fputs("simulate: something reads the real clock\n", stderr);
    std::abort();
}

} // namespace redlock
