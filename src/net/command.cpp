// SPDX-License-Identifier: BSL-1.0
// The commands that are sent to masters, and the translation of their replies into votes.
#include "net/command.hpp"

#include "net/decimal.hpp"
#include "resp/serialise.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>

namespace redlock::net
{

namespace
{

answer read_error(const resp::reply& reply) noexcept
{
    const core::server_error error = core::classify(reply.text());
    answer result = make_failed_vote(vote::failed, reason_of(error), reply.text());
    result.error = error;
    return result;
}

answer answered(vote value) noexcept
{
    answer result;
    result.vote = value;
    return result;
}

answer unexpected() noexcept
{
    return make_failed_vote(vote::failed, master_errc::protocol_error);
}

std::optional<std::int64_t>
integer_between(std::int64_t least, std::int64_t most, const resp::reply& reply) noexcept
{
    const bool is_one =
        reply.root().kind == resp::kind::integer && reply.integer() >= least && reply.integer() <= most;
    return is_one ? std::optional{reply.integer()} : std::nullopt;
}

/// Translates a reply to PTTL. Empty for a key without an expiry, or without a key. A longer time counts as a century,
/// which every clock can represent.
std::optional<std::chrono::milliseconds> time_to_live(std::int64_t answered) noexcept
{
    constexpr std::chrono::milliseconds most = std::chrono::hours{24 * 365 * 100};
    return answered < 0 ? std::nullopt : std::optional{std::min(std::chrono::milliseconds{answered}, most)};
}

/// Translates such a reply of a script that first compares the key with the owner id: a key of another type is denied.
answer not_compared(const resp::reply& reply) noexcept
{
    answer result = read_unexpected(reply);
    if (result.error == core::server_error::wrong_type)
    {
        result = answered(vote::denied);
        result.error = core::server_error::wrong_type;
    }
    return result;
}

} // namespace

void append_set(std::string& out, const claim& of, std::chrono::milliseconds ttl)
{
    const decimal milliseconds{ttl};
    resp::append_command(out, {"SET", of.key(), of.owner_id(), "NX", "PX", milliseconds.view()});
}

void append_extend(std::string& out, const claim& of, std::chrono::milliseconds ttl, script_form form)
{
    const decimal milliseconds{ttl};
    resp::append_command(
        out,
        {verb_of(form), body_of(extend_script, form), "1", of.key(), of.owner_id(), milliseconds.view()});
}

void append_release(std::string& out, const claim& of, script_form form)
{
    resp::append_command(out, {verb_of(form), body_of(release_script, form), "1", of.key(), of.owner_id()});
}

void append_inspect(std::string& out, std::string_view key)
{
    resp::append_command(out, {verb_of(script_form::text), inspect_script, "1", key});
}

answer read_unexpected(const resp::reply& reply) noexcept
{
    return reply.is_error() ? read_error(reply) : unexpected();
}

answer read_set(const resp::reply& reply) noexcept
{
    if (reply.is_error())
    {
        return read_error(reply);
    }
    if (reply.is_null())
    {
        return answered(vote::denied);
    }
    const bool is_ok = reply.root().kind == resp::kind::simple_string && reply.text() == "OK";
    return is_ok ? answered(vote::granted) : unexpected();
}

answer read_extend(const resp::reply& reply) noexcept
{
    const std::optional<std::int64_t> number = integer_between(0, 1, reply);
    return number ? answered(*number == 1 ? vote::granted : vote::denied) : not_compared(reply);
}

answer read_release(const resp::reply& reply) noexcept
{
    const std::optional<std::int64_t> number = integer_between(0, 3, reply);
    if (!number)
    {
        return not_compared(reply);
    }
    answer result = answered(*number % 2 == 1 ? vote::granted : vote::denied);
    result.others_wait = *number > 1;
    return result;
}

answer read_ask(const resp::reply& reply, core::queue_position& position) noexcept
{
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (const std::optional<std::int64_t> waiting = integer_between(0, most, reply))
    {
        answer result = answered(vote::granted);
        result.others_wait = *waiting > 0;
        return result;
    }
    const std::span<const resp::node> nodes = reply.nodes;
    const bool fits = nodes.size() == 4 && reply.root().kind == resp::kind::array &&
                      std::all_of(
                          nodes.begin() + 1, nodes.end(),
                          [](const resp::node& each) { return each.kind == resp::kind::integer; });
    if (!fits || nodes[1].integer < -1 || nodes[3].integer <= nodes[1].integer)
    {
        return read_unexpected(reply);
    }
    answer result = answered(vote::denied);
    result.others_wait = true;
    if (nodes[1].integer >= 0)
    {
        position = {
            static_cast<std::size_t>(nodes[1].integer), time_to_live(nodes[2].integer),
            static_cast<std::size_t>(nodes[3].integer)};
        result.position = &position;
    }
    return result;
}

key_state read_inspect(const resp::reply& reply) noexcept
{
    key_state found;
    const bool is_pair = reply.root().kind == resp::kind::array && reply.nodes.size() == 3 &&
                         reply.nodes[2].kind == resp::kind::integer;
    const resp::node& value = is_pair ? reply.nodes[1] : reply.root();
    const bool is_error = value.kind == resp::kind::simple_error || value.kind == resp::kind::bulk_error;
    if (is_error)
    {
        found.detail = value.text;
    }
    const bool other_type = is_pair && is_error && value.text.starts_with("WRONGTYPE");
    if (is_error && !other_type)
    {
        found.reason = reason_of(core::classify(value.text));
        return found;
    }
    const bool is_value = value.kind == resp::kind::bulk_string;
    if (!is_pair || (!is_value && !other_type && value.kind != resp::kind::null))
    {
        found.reason = master_errc::protocol_error;
        return found;
    }
    found.exists = is_value || other_type;
    found.owner_id = is_value ? value.text : std::string_view{};
    if (found.exists)
    {
        found.expires_in = time_to_live(reply.nodes[2].integer);
    }
    return found;
}

std::optional<std::chrono::microseconds> read_time(const resp::reply& reply) noexcept
{
    std::array<std::int64_t, 2> parts{}; // Seconds and microseconds.
    if (reply.root().kind != resp::kind::array || reply.nodes.size() != 1 + parts.size())
    {
        return std::nullopt;
    }
    constexpr std::array<std::int64_t, 2> most{std::int64_t{1} << 40, 999'999};
    for (std::size_t part = 0; part < parts.size(); ++part)
    {
        const resp::node& given = reply.nodes[part + 1];
        const char* const end = given.text.data() + given.text.size();
        parts[part] = given.integer; // Dragonfly sends integers, others texts.
        const auto [stop, error] = std::from_chars(given.text.data(), end, parts[part]);
        const bool is_number = given.kind == resp::kind::integer || (error == std::errc{} && stop == end);
        if (!is_number || parts[part] < 0 || parts[part] > most[part])
        {
            return std::nullopt;
        }
    }
    return std::chrono::seconds{parts[0]} + std::chrono::microseconds{parts[1]};
}

std::string clock_complaint(clock::duration off)
{
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(off).count();
    return (milliseconds < 0 ? "it fell behind by " : "it went ahead by ") +
           std::to_string(std::abs(milliseconds)) + " ms";
}

error_code reason_of(core::server_error error) noexcept
{
    switch (error)
    {
    case core::server_error::loading:
        return master_errc::loading;
    case core::server_error::busy:
        return master_errc::busy;
    case core::server_error::read_only:
        return master_errc::read_only;
    case core::server_error::no_replicas:
        return master_errc::no_replicas;
    case core::server_error::misconfigured:
        return master_errc::misconfigured;
    case core::server_error::out_of_memory:
        return master_errc::out_of_memory;
    case core::server_error::authentication:
        return master_errc::authentication_failed;
    case core::server_error::no_permission:
        return master_errc::no_permission;
    case core::server_error::too_many_clients:
        return master_errc::too_many_clients;
    case core::server_error::cluster:
        return master_errc::cluster_node;
    case core::server_error::none:
    case core::server_error::no_script:
    case core::server_error::wrong_type:
    case core::server_error::unknown_command:
    case core::server_error::other:
        break;
    }
    return master_errc::command_failed;
}

bool is_permanent(error_code reason) noexcept
{
    return reason == master_errc::authentication_failed || reason == master_errc::no_permission ||
           reason == master_errc::certificate_untrusted || reason == master_errc::certificate_expired ||
           reason == master_errc::certificate_wrong_name || reason == master_errc::cluster_node ||
           reason == master_errc::same_server || reason == master_errc::other_group ||
           reason == master_errc::not_a_member || reason == master_errc::no_database;
}

} // namespace redlock::net
