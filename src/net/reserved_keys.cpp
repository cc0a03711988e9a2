// SPDX-License-Identifier: BSL-1.0
// The keys that belong to the library itself.
#include "net/reserved_keys.hpp"

#include "net/guard_keys.hpp"
#include "net/queue_commands.hpp"

#include <algorithm>
#include <array>

namespace redlock::net
{

namespace
{

constexpr std::array guard_names{members_key_suffix, guard_key_suffix, fence_key_suffix};
static_assert(std::all_of(
    guard_names.begin(), guard_names.end(),
    [](std::string_view each) { return each.size() >= shortest_guard_name; }));
constexpr std::string_view common_beginning = ":redlock-";

} // namespace

bool contains_guard_name(std::string_view text) noexcept
{
    return text.find(common_beginning) != std::string_view::npos &&
           std::any_of(
               guard_names.begin(), guard_names.end(),
               [text](std::string_view each) { return text.find(each) != std::string_view::npos; });
}

reserved_keys::reserved_keys(std::string_view key_prefix)
{
    if (queue_key_prefix.starts_with(key_prefix) && key_prefix != queue_key_prefix)
    {
        beginnings_.emplace_back(queue_key_prefix.substr(key_prefix.size()));
    }
    for (const std::string_view name : guard_names)
    {
        for (std::size_t head = 1; head < name.size(); ++head)
        {
            if (key_prefix.ends_with(name.substr(0, head)))
            {
                beginnings_.emplace_back(name.substr(head));
            }
        }
    }
    for (const std::string& each : beginnings_)
    {
        may_begin_.set(static_cast<unsigned char>(each.front()));
    }
}

bool reserved_keys::begins_with_name(std::string_view resource) const noexcept
{
    return std::any_of(
        beginnings_.begin(), beginnings_.end(),
        [resource](const std::string& each) { return resource.starts_with(each); });
}

} // namespace redlock::net
