// SPDX-License-Identifier: BSL-1.0
// The groups that a change replaces.
#include "core/replaced_groups.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core
{

namespace
{

/// Takes the first line from a text.
std::string_view take_line(std::string_view& text)
{
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

} // namespace

bool shows_use(const marker& its) noexcept
{
    const bool was_armed = its.why == incarnation_end::stale || its.why == incarnation_end::clock;
    return its.state == marker_state::armed || (its.state == marker_state::quarantine && was_armed);
}

std::optional<std::vector<replaced_group>> parse_replaced(std::string_view text)
{
    std::vector<replaced_group> groups;
    do
    {
        std::optional<marker> shown = parse_marker(take_line(text));
        std::optional<member_record> members = parse_members(take_line(text));
        if (!shown || !members || members->group != shown->group || members->names.size() != shown->masters ||
            contains(groups, shown->group))
        {
            return std::nullopt;
        }
        groups.push_back({*std::move(shown), *std::move(members)});
    } while (!text.empty());
    return groups;
}

std::string to_text(std::span<const replaced_group> groups)
{
    std::string text;
    for (const replaced_group& each : groups)
    {
        text.append(text.empty() ? "" : "\n").append(to_text(each.shown));
        text.append("\n").append(to_text(each.members));
    }
    return text;
}

bool contains(std::span<const replaced_group> groups, std::string_view name) noexcept
{
    return std::any_of(
        groups.begin(), groups.end(),
        [name](const replaced_group& each) { return each.shown.group == name; });
}

} // namespace redlock::core
