// SPDX-License-Identifier: BSL-1.0
// Columns as wide as what stands in them.
#include "cli/diagnosis_text.hpp"

#include "cli/persistence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::cli
{

namespace
{

using row = std::array<std::string, 6>;

std::string or_dash(std::string text)
{
    return text.empty() ? "-" : std::move(text);
}

std::string round_trip(std::chrono::nanoseconds value)
{
    const double in_ms = std::chrono::duration<double, std::milli>{value}.count();
    return value.count() == 0 ? "-" : fmt::format("{:.2f} ms", in_ms);
}

row row_of(const master_diagnosis& one)
{
    const master_examination& examined = one.examined;
    return {
        examined.name,
        or_dash(examined.server),
        round_trip(examined.fastest_round_trip),
        round_trip(examined.median_round_trip),
        one.result == verdict::unusable ? "-" : persistence_of(examined),
        std::string{to_string(one.result)}};
}

std::string table_of(const diagnosis& all)
{
    std::vector<row> rows{{"master", "server", "fastest", "median", "persistence", "verdict"}};
    for (const master_diagnosis& each : all.masters)
    {
        rows.push_back(row_of(each));
    }
    std::array<std::size_t, std::tuple_size_v<row>> widths{};
    for (const row& each : rows)
    {
        for (std::size_t column = 0; column < each.size(); ++column)
        {
            widths[column] = std::max(widths[column], each[column].size());
        }
    }
    std::string text;
    for (const row& each : rows)
    {
        for (std::size_t column = 0; column + 1 < each.size(); ++column)
        {
            text += fmt::format("{:<{}}  ", each[column], widths[column]);
        }
        text += each.back() + '\n';
    }
    return text;
}

std::string findings_in(const diagnosis& all)
{
    std::string text;
    for (const master_diagnosis& one : all.masters)
    {
        for (const finding& each : one.findings)
        {
            text += fmt::format(
                "{}: {}: {}. {}. {}.\n", one.examined.name, to_string(each.level), each.what, each.meaning,
                each.advice);
        }
    }
    return text.empty() ? text : '\n' + text;
}

std::string conclusion(const diagnosis& all)
{
    const std::string counted = fmt::format(
        "{}: {} of {} masters can be used, a quorum is {}", to_string(all.result), all.usable,
        all.masters.size(), all.quorum);
    if (all.result == verdict::unusable)
    {
        return counted + ": no lock can be taken";
    }
    return counted + (all.may_fail() == 0 ? ": none of them may fail"
                                          : fmt::format(": {} of them may fail", all.may_fail()));
}

} // namespace

std::string text_of(const diagnosis& all)
{
    return table_of(all) + findings_in(all) + '\n' + conclusion(all) + '\n';
}

} // namespace redlock::cli
