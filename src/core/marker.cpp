// SPDX-License-Identifier: BSL-1.0
// The marker of a master in guarded mode.
#include "core/marker.hpp"

#include "core/validity.hpp"
#include "core/words.hpp"

#include <redlock/vote.hpp>

#include <array>
#include <utility>

namespace redlock::core
{

namespace
{

constexpr std::string_view format = "redlock 1";
constexpr std::array<std::string_view, 2> policies{"clocks", "operator"};
constexpr std::array<std::string_view, 3> states{"armed", "quarantine", "retired"};
constexpr std::array<std::string_view, 4> ends{"new", "stale", "emptied", "clock"};

template <class Value, std::size_t size>
std::string_view name_of(Value value, const std::array<std::string_view, size>& names)
{
    return names.at(static_cast<std::size_t>(value));
}

} // namespace

std::optional<marker> parse_marker(std::string_view text)
{
    if (!text.starts_with(format) || !text.substr(format.size()).starts_with(' '))
    {
        return std::nullopt;
    }
    words left{text.substr(format.size() + 1)};
    marker found;
    found.group = left.identifier(guard_id_length);
    found.seat = static_cast<std::uint32_t>(left.number(max_masters));
    found.masters = static_cast<std::uint32_t>(left.number(max_masters));
    found.max_ttl = std::chrono::milliseconds{left.number(max_ttl.count())};
    found.policy = left.one_of<arming_policy>(policies);
    found.state = left.one_of<marker_state>(states);
    found.why = left.one_of<incarnation_end>(ends);
    found.nonce = left.identifier(guard_id_length);
    found.replication_id = left.identifier(replication_id_length);
    return left.complete() && found.seat <= found.masters ? std::optional{std::move(found)} : std::nullopt;
}

std::string to_text(const marker& of)
{
    std::string text{format};
    const auto add = [&text](std::string_view word) { text.append(" ").append(word); };
    add(of.group);
    add(std::to_string(of.seat));
    add(std::to_string(of.masters));
    add(std::to_string(of.max_ttl.count()));
    add(name_of(of.policy, policies));
    add(name_of(of.state, states));
    add(name_of(of.why, ends));
    add(of.nonce);
    add(of.replication_id);
    return text;
}

std::string marker_beginning(std::string_view group)
{
    return std::string{format}.append(" ").append(group).append(" ");
}

marker armed(marker in_quarantine)
{
    in_quarantine.state = marker_state::armed;
    return in_quarantine;
}

} // namespace redlock::core
