// SPDX-License-Identifier: BSL-1.0
// The record of the members of a guarded group.
#include "core/members.hpp"

#include "core/marker.hpp"
#include "core/words.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <utility>

namespace redlock::core
{

namespace
{

bool is_member_name(std::string_view name) noexcept
{
    const auto is_printable = [](char each) { return each > ' ' && each <= '~'; };
    return !name.empty() && name.size() <= max_member_name &&
           std::all_of(name.begin(), name.end(), is_printable);
}

std::string seat_prefix(std::size_t seat)
{
    return std::to_string(seat) + "=";
}

} // namespace

std::optional<member_record> parse_members(std::string_view text)
{
    words left{text};
    member_record found;
    found.group = left.identifier(guard_id_length);
    while (!left.ended())
    {
        const std::string_view word = left.next();
        const std::string prefix = seat_prefix(found.names.size() + 1);
        if (found.names.size() == max_masters || !word.starts_with(prefix))
        {
            return std::nullopt;
        }
        const std::string_view name = word.substr(prefix.size());
        if (!is_member_name(name) || seat_of(found, name))
        {
            return std::nullopt;
        }
        found.names.emplace_back(name);
    }
    return left.complete() && !found.names.empty() ? std::optional{std::move(found)} : std::nullopt;
}

std::string to_text(const member_record& of)
{
    std::string text = of.group;
    for (std::size_t seat = 1; seat <= of.names.size(); ++seat)
    {
        text.append(" ").append(seat_prefix(seat)).append(of.names[seat - 1]);
    }
    return text;
}

std::vector<std::string> without(std::vector<std::string> names, std::span<const std::string> others)
{
    const auto is_other = [others](const std::string& each)
    { return std::find(others.begin(), others.end(), each) != others.end(); };
    names.erase(std::remove_if(names.begin(), names.end(), is_other), names.end());
    return names;
}

std::string listed(std::span<const std::string> names)
{
    std::string text;
    for (const std::string& each : names)
    {
        text.append(text.empty() ? "" : ", ").append(each);
    }
    return text;
}

std::optional<std::uint32_t> seat_of(const member_record& record, std::string_view name) noexcept
{
    const auto found = std::find(record.names.begin(), record.names.end(), name);
    return found == record.names.end()
               ? std::nullopt
               : std::optional{static_cast<std::uint32_t>(found - record.names.begin() + 1)};
}

} // namespace redlock::core
