// SPDX-License-Identifier: BSL-1.0
// Durations as people write them: 500ms, 10s, 5m, 2h, 1d.
#pragma once

#include <redlock/options.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace redlock::cli
{

/// Reads a whole number with one of the units ms, s, m, h, d. Throws `std::invalid_argument` with what is wrong and
/// what is allowed: a bare number too, since nobody can tell what it counts.
std::chrono::milliseconds read_duration(std::string_view text);

/// The same, or "unlimited".
time_limit read_limit(std::string_view text);

/// For a message: "500 ms", "2.5 s", "12 h".
std::string in_words(std::chrono::milliseconds value);

} // namespace redlock::cli
