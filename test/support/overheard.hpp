// SPDX-License-Identifier: BSL-1.0
// Searches the output of the tests for passwords: a test program fails if one occurs in any text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Registers a password to search for. Thread-safe, like the other functions.
void keep_secret(std::string_view password);
/// Searches a text that is meant for people; `whom` is its source: "a report", "an event".
void overhear(std::string_view text, std::string_view whom);

/// The result of the searches.
struct overheard
{
    std::size_t texts = 0;
    std::size_t secrets = 0;
    /// The texts with a password, each with its source; at most 20.
    std::vector<std::string> with_a_password = {};
};
overheard overheard_so_far();

} // namespace redlock::test
