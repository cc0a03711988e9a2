// SPDX-License-Identifier: BSL-1.0
// What the tests of commands compare.
#pragma once

#include "support/request_reader.hpp"

#include <catch2/catch_test_macros.hpp>

#include <optional>
#include <string>

namespace redlock::test
{

/// Returns the words of the only command in `bytes`.
inline command only_command(const std::string& bytes)
{
    request_reader reader;
    reader.feed(bytes);
    const std::optional<command> found = reader.next();
    REQUIRE(found);
    CHECK(!reader.next());
    return *found;
}

} // namespace redlock::test
