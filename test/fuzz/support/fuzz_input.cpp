// SPDX-License-Identifier: BSL-1.0
// How a run ends that has found something.
#include "fuzz_input.hpp"

#include <cstdio>
#include <cstdlib>

namespace redlock::test
{

void fail(std::string_view why)
{
    std::fprintf(stderr, "found: %.*s\n", static_cast<int>(why.size()), why.data());
    std::abort();
}

} // namespace redlock::test
