// SPDX-License-Identifier: BSL-1.0
// The message with which an invalid address is refused.
#pragma once

#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace redlock::test
{

/// Returns the message of the exception; fails the test if the address is accepted.
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
