// SPDX-License-Identifier: BSL-1.0
// A real manager with its connections, on virtual time, among masters that answer whatever the input says, while its
// user does whatever the input says. docs/fuzzing.md lists what has to hold.
// Input: the manager's options and the masters' ways (5 bytes), then one thing after the other that happens. Each
// takes its decisions from what follows, and so does each answer of a hostile master, when it is due.
#include "support/hostile_scene.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redlock::test;
    fuzz_input input{{data, size}};
    hostile_scene scene{input};
    while (!input.empty())
    {
        scene.act();
    }
    scene.end();
    return 0;
}
