// SPDX-License-Identifier: BSL-1.0
// Looks for passwords in what is said while the tests run: a program of tests fails when one occurs in anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// From now on nothing may say this. Thread-safe, as the others.
void keep_secret(std::string_view password);
/// This was said, for a person to read, by `whom`: "a report", "an event".
void overhear(std::string_view text, std::string_view whom);

/// What was overheard so far.
struct overheard
{
    std::size_t texts = 0;
    std::size_t secrets = 0;
    /// Each with who said it; at most 20 of them.
    std::vector<std::string> with_a_password = {};
};
overheard overheard_so_far();

} // namespace redlock::test
