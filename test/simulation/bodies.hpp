// SPDX-License-Identifier: BSL-1.0
// The shared parts of the tests of bodies that run under a lock.
#pragma once

#include "simulation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace redlock::test
{

/// Starts an operation with a body, and runs until the body has begun and nothing is left to do.
inline outcome_ptr begun(simulation& sim, lock_manager& locks, job& body, keep_options with)
{
    const outcome_ptr work = sim.with_lock(locks, "stock", with, body);
    REQUIRE(sim.run_until([&] { return body.held != nullptr; }, 1s));
    sim.run_until_idle();
    return work;
}

/// Makes all masters stop answering.
inline void hang_all(simulation& sim)
{
    for (const auto& each : sim.masters())
    {
        each->hang();
    }
}

/// Returns true for a runtime_error with the text "mine", as bodies of the tests throw it.
inline bool is_its_own(const std::exception_ptr& thrown)
{
    try
    {
        std::rethrow_exception(thrown);
    }
    catch (const std::runtime_error& error)
    {
        return error.what() == std::string{"mine"};
    }
    catch (...)
    {
        return false;
    }
}

} // namespace redlock::test
