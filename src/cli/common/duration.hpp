// SPDX-License-Identifier: BSL-1.0
// Durations of the command line: 500ms, 10s, 5m, 2h, 1d.
#pragma once

#include <redlock/options.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace redlock::cli
{

/// Parses a whole number with one of the units ms, s, m, h, d. Throws `std::invalid_argument`, whose message says what
/// is allowed. A number without a unit is refused as ambiguous.
std::chrono::milliseconds read_duration(std::string_view text);

/// Same; also accepts "unlimited".
time_limit read_limit(std::string_view text);

/// Formats a duration for a message: "500 ms", "2.5 s", "12 h".
std::string in_words(std::chrono::milliseconds value);

} // namespace redlock::cli
