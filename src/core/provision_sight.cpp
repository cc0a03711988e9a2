// SPDX-License-Identifier: BSL-1.0
// What provisioning finds on a master, whatever the run does.
#include "core/provision_sight.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace redlock
{

std::string_view to_string(provision_finding value) noexcept
{
    constexpr std::array<std::string_view, 20> names{
        "unknown",     "unmarked",       "unfinished", "armed",     "changed",    "in_service", "other_run",
        "other_group", "other_database", "unreadable", "evicts",    "replica",    "not_empty",  "restarted",
        "emptied",     "clock_ahead",    "marked",     "old_group", "left_group", "stopped"};
    const auto index = static_cast<std::size_t>(value);
    return index < names.size() ? names[index] : "unknown";
}

} // namespace redlock

namespace redlock::core
{

namespace
{

/// Returns the text of a marker in quotes, without the nonce and the replication id, which mean nothing to a person.
std::string quoted(const std::string& text)
{
    constexpr std::size_t end_of_marker = guard_id_length + replication_id_length + 2;
    const std::size_t shown = parse_marker(text) ? text.size() - end_of_marker : text.size();
    return '"' + text.substr(0, shown) + '"';
}

} // namespace

provision_seat seat_with(provision_finding found, std::string detail)
{
    provision_seat one;
    one.found = found;
    one.detail = std::move(detail);
    return one;
}

std::string quoted_marker(const provision_sight& seen)
{
    return seen.marker ? "its marker is " + quoted(*seen.marker) : "it has no marker";
}

std::optional<provision_seat> find_misfit(const provision_sight& seen)
{
    if (!seen.is_known)
    {
        return seat_with(provision_finding::unknown);
    }
    if (!seen.is_master)
    {
        return seat_with(provision_finding::replica);
    }
    if (seen.maxmemory_policy != "noeviction")
    {
        const bool is_shown = !seen.maxmemory_policy.empty();
        return seat_with(
            provision_finding::evicts,
            "maxmemory-policy is " + (is_shown ? seen.maxmemory_policy : std::string{"unknown"}));
    }
    if (seen.has_foreign_key)
    {
        return seat_with(provision_finding::unreadable, "one of its keys has another type");
    }
    if (seen.other_database)
    {
        return seat_with(
            provision_finding::other_database, "the marker of database " +
                                                   std::to_string(*seen.other_database) + " is " +
                                                   quoted(seen.other_marker));
    }
    return std::nullopt;
}

std::optional<marker> marker_in(const provision_sight& seen)
{
    return seen.is_known && seen.marker ? parse_marker(*seen.marker) : std::nullopt;
}

std::vector<std::uint32_t> seats_of(
    std::span<const provision_sight> seen, const std::string& group,
    const std::optional<member_record>& record, std::span<const std::string> names)
{
    std::vector<std::uint32_t> seats(names.size());
    std::set<std::uint32_t> taken;
    std::map<std::string_view, std::size_t> others;
    for (std::size_t index = 0; index < names.size(); ++index)
    {
        const std::optional<marker> its = marker_in(seen[index]);
        const bool is_marked = its && its->group == group && its->masters == names.size();
        const std::optional<std::uint32_t> marked = is_marked ? std::optional{its->seat} : std::nullopt;
        const std::optional<std::uint32_t> known = record ? seat_of(*record, names[index]) : marked;
        if (known && taken.insert(*known).second)
        {
            seats[index] = *known;
        }
        else
        {
            others.emplace(names[index], index);
        }
    }
    std::uint32_t next = 1;
    for (const auto& [name, index] : others)
    {
        while (!taken.insert(next).second)
        {
            ++next;
        }
        seats[index] = next;
    }
    return seats;
}

std::optional<member_record> record_among(std::span<const provision_sight> seen, const std::string& group)
{
    for (const provision_sight& each : seen)
    {
        std::optional<member_record> its = each.members ? parse_members(*each.members) : std::nullopt;
        if (its && its->group == group)
        {
            return its;
        }
    }
    return std::nullopt;
}

bool is_list_of(const std::optional<member_record>& record, std::vector<std::string> names)
{
    if (!record)
    {
        return true;
    }
    std::vector<std::string> recorded = record->names;
    std::sort(recorded.begin(), recorded.end());
    std::sort(names.begin(), names.end());
    return recorded == names;
}

} // namespace redlock::core
