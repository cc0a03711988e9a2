// SPDX-License-Identifier: BSL-1.0
// Parses and formats durations.
#include "cli/common/duration.hpp"

#include "cli/common/message.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <system_error>

namespace redlock::cli
{

namespace
{

using std::chrono::milliseconds;

struct unit
{
    std::string_view name;
    std::int64_t in_ms;
};

constexpr std::array units{
    unit{"ms", 1}, unit{"s", 1000}, unit{"m", 60'000}, unit{"h", 3'600'000}, unit{"d", 86'400'000}};

/// About a hundred years, so that no sum of times overflows.
constexpr std::int64_t max_in_ms = 36'500 * units.back().in_ms;

[[noreturn]] void refuse(std::string_view text, std::string_view why)
{
    throw std::invalid_argument{fmt::format("{} is not a duration: {}", shown_word(text), why)};
}

} // namespace

milliseconds read_duration(std::string_view text)
{
    std::int64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, count);
    if (problem == std::errc::result_out_of_range)
    {
        refuse(text, "the longest is 36500d");
    }
    if (problem != std::errc{} || text.front() == '-')
    {
        refuse(text, "give a whole number with a unit, as in 500ms, 10s, 5m, 2h or 1d");
    }
    const std::string_view name{stop, end};
    if (name.empty())
    {
        refuse(text, fmt::format("it has no unit; give {0}s for seconds, or {0}ms, {0}m, {0}h, {0}d", count));
    }
    for (const unit& each : units)
    {
        if (name == each.name)
        {
            if (count > max_in_ms / each.in_ms)
            {
                refuse(text, "the longest is 36500d");
            }
            return milliseconds{count * each.in_ms};
        }
    }
    refuse(text, "give a whole number with one of the units ms, s, m, h and d, and nothing after it");
}

time_limit read_limit(std::string_view text)
{
    if (text == "unlimited")
    {
        return no_limit;
    }
    return read_duration(text);
}

std::string in_words(milliseconds value)
{
    const std::int64_t count = value.count();
    for (std::size_t at = units.size(); at-- > 1;)
    {
        if (count != 0 && count % units[at].in_ms == 0)
        {
            return fmt::format("{} {}", count / units[at].in_ms, units[at].name);
        }
    }
    return count < 1000 ? fmt::format("{} ms", count)
                        : fmt::format("{} s", static_cast<double>(count) / 1000.0);
}

} // namespace redlock::cli
