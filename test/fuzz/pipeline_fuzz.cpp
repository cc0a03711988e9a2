// SPDX-License-Identifier: BSL-1.0
// The commands in flight on one connection, and what a hostile server answers to them: held against a model that is
// a queue and nothing else. Without I/O and time, so that it runs often; manager_fuzz has all of it.
// Input: 1 byte for the limits, then one thing after the other that happens.
#include "support/fuzz_input.hpp"
#include "support/model_pipeline.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redlock::test;
    fuzz_input input{{data, size}};
    model_pipeline model{input};
    while (!input.empty())
    {
        model.act();
    }
    model.end();
    return 0;
}
