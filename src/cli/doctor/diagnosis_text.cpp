// SPDX-License-Identifier: BSL-1.0
// Formats a diagnosis as a table, whose columns are as wide as their contents, and lines of findings.
#include "cli/doctor/diagnosis_text.hpp"

#include "cli/doctor/persistence.hpp"
#include "cli/doctor/standing.hpp"

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

using row = std::array<std::string, 7>;

std::string or_dash(std::string text)
{
    return text.empty() ? "-" : std::move(text);
}

std::string round_trip(std::chrono::nanoseconds value)
{
    return value.count() == 0 ? "-" : in_ms(value);
}

row row_of(const master_diagnosis& one)
{
    const master_examination& examined = one.facts.examined;
    return {
        examined.name,
        or_dash(examined.server),
        round_trip(examined.fastest_round_trip),
        round_trip(examined.median_round_trip),
        round_trip(one.facts.probed ? one.facts.probed->slowest() : std::chrono::nanoseconds{0}),
        one.result == verdict::unusable ? "-" : persistence_of(examined),
        std::string{to_string(one.result)}};
}

std::string table_of(const diagnosis& all)
{
    std::vector<row> rows{{"master", "server", "fastest", "median", "lock", "persistence", "verdict"}};
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

/// Returns the lines about the groups of guarded mode, after an empty one.
std::string groups_in(const diagnosis& all)
{
    std::vector<const guarded_examination*> masters;
    for (const master_diagnosis& each : all.masters)
    {
        const std::optional<guarded_examination>& its = each.facts.examined.guarded;
        masters.push_back(its ? &*its : nullptr);
    }
    const std::string text = group_lines(masters);
    return text.empty() ? text : '\n' + text;
}

/// Returns true if two findings are equal except for the measured time.
bool is_same(const finding& left, const finding& right)
{
    return left.level == right.level && left.kind == right.kind && left.what == right.what &&
           left.meaning == right.meaning && left.advice == right.advice;
}

/// Returns this finding of every master. Empty if a master doesn't have it, or if there is only one master.
std::vector<const finding*> on_all(const diagnosis& all, const finding& one)
{
    std::vector<const finding*> same;
    for (const master_diagnosis& each : all.masters)
    {
        const auto found = std::find_if(
            each.findings.begin(), each.findings.end(),
            [&one](const finding& other) { return is_same(one, other); });
        if (found == each.findings.end() || all.masters.size() == 1)
        {
            return {};
        }
        same.push_back(&*found);
    }
    return same;
}

std::string line_of(std::string_view whose, const finding& one, std::string_view seen)
{
    return fmt::format("{}: {}: {}. {}. {}.\n", whose, to_string(one.level), seen, one.meaning, one.advice);
}

/// Formats a finding that all masters have in common, with the range of the measured times.
std::string line_of_all(const std::vector<const finding*>& same)
{
    const finding& first = *same.front();
    std::string seen = first.seen();
    if (first.measured)
    {
        const auto [least, most] = std::minmax_element(
            same.begin(), same.end(),
            [](const finding* left, const finding* right) { return left->measured < right->measured; });
        seen = fmt::format("{} {} to {}", first.what, in_ms(*(*least)->measured), in_ms(*(*most)->measured));
    }
    return line_of(fmt::format("all {} masters", same.size()), first, seen);
}

std::string findings_in(const diagnosis& all)
{
    std::string of_all;
    std::string text;
    for (const master_diagnosis& one : all.masters)
    {
        for (const finding& each : one.findings)
        {
            const std::vector<const finding*> same = on_all(all, each);
            if (same.empty())
            {
                text += line_of(one.facts.examined.name, each, each.seen());
            }
            else if (same.front() == &each)
            {
                of_all += line_of_all(same);
            }
        }
    }
    text = of_all + text;
    return text.empty() ? text : '\n' + text;
}

std::string conclusion(const diagnosis& all)
{
    const std::string counted = fmt::format(
        "{}: {} of {} masters can be used (quorum {})", to_string(all.result), all.usable, all.masters.size(),
        all.quorum);
    if (all.result == verdict::unusable)
    {
        return counted + ": no lock can be acquired";
    }
    return counted + (all.may_fail() == 0 ? ": none of them may fail"
                                          : fmt::format(": {} of them may fail", all.may_fail()));
}

} // namespace

std::string text_of(const diagnosis& all)
{
    return table_of(all) + groups_in(all) + findings_in(all) + '\n' + conclusion(all) + '\n';
}

} // namespace redlock::cli
