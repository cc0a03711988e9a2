// SPDX-License-Identifier: BSL-1.0
// What is said to an address that can't be one.
#pragma once

#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace redlock::test
{

/// What is said to something that can't be an address; fails if nothing is.
template <class Address>
std::string refusal_of(const Address& address)
{
    try
    {
        const master accepted{address};
        FAIL("accepted as " << accepted.name());
    }
    catch (const system_error& error)
    {
        CHECK(error.code() == errc::invalid_master);
        return error.what();
    }
    return {};
}

} // namespace redlock::test
