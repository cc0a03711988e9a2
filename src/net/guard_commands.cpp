// SPDX-License-Identifier: BSL-1.0
// The commands of guarded mode.
#include "net/guard_commands.hpp"

#include "core/queue_master.hpp"
#include "net/decimal.hpp"
#include "net/guard_scripts.hpp"
#include "net/info_field.hpp"
#include "net/trial_scripts.hpp"
#include "resp/serialise.hpp"

#include <algorithm>

namespace redlock::net
{

namespace
{

constexpr std::uint64_t slots = 1024; // Part of the format.

decimal slot_of(const claim& of) noexcept
{
    return decimal{core::stable_hash(of.key()) % slots};
}

/// Translates a negative answer, which `reply` may be.
std::optional<answer> refusal(const resp::reply& reply) noexcept
{
    if (reply.root().kind != resp::kind::integer)
    {
        return std::nullopt;
    }
    error_code reason;
    switch (reply.integer())
    {
    case guard_differs:
    case incarnation_differs:
        reason = master_errc::incarnation_changed;
        break;
    case clock_is_ahead:
        reason = master_errc::clock_ahead;
        break;
    default:
        return std::nullopt;
    }
    answer result = make_failed_vote(vote::failed, reason);
    result.set_nothing = true;
    return result;
}

bool is_counter(std::int64_t number) noexcept
{
    return number > 0 && number <= max_counter;
}

} // namespace

void append_guarded_set(
    std::string& out, const claim& of, const guard_keys& keys, std::chrono::milliseconds ttl,
    const voting_terms& terms, script_form form)
{
    resp::append_command(
        out, {verb_of(form), body_of(guarded_acquire_script, form), "3", of.key(), keys.guard, keys.fence,
              of.owner_id(), decimal{ttl}.view(), terms.marker, slot_of(of).view(),
              decimal{terms.hint}.view(), decimal{terms.latest.count()}.view()});
}

void append_guarded_ask(
    std::string& out, const claim& of, const guard_keys& keys, const question& asked,
    const voting_terms& terms, script_form form)
{
    resp::append_command(
        out,
        {verb_of(form), body_of(guarded_ask_script, form), "3", of.key(), keys.guard, keys.fence,
         member_name{asked.member}.view(), of.owner_id(), decimal{asked.ttl}.view(),
         decimal{asked.waited}.view(), decimal{asked.liveness}.view(), decimal{asked.grace}.view(),
         terms.marker, slot_of(of).view(), decimal{terms.hint}.view(), decimal{terms.latest.count()}.view()});
}

void append_raise(
    std::string& out, const claim& of, const guard_keys& keys, std::string_view marker, std::uint64_t token,
    script_form form)
{
    resp::append_command(
        out, {verb_of(form), body_of(raise_script, form), "3", of.key(), keys.guard, keys.fence,
              of.owner_id(), marker, slot_of(of).view(), decimal{token}.view()});
}

void append_guarded_extend(
    std::string& out, const claim& of, const guard_keys& keys, std::chrono::milliseconds ttl,
    std::string_view group, script_form form)
{
    const std::string beginning = core::marker_beginning(group);
    resp::append_command(
        out, {verb_of(form), body_of(guarded_extend_script, form), "2", of.key(), keys.guard, of.owner_id(),
              decimal{ttl}.view(), beginning});
}

void append_vote_trial(std::string& out, const guard_keys& keys, int database)
{
    const decimal number{database};
    resp::append_command(out, {"EVAL", vote_trial_script, "2", keys.guard, keys.fence, number.view()});
}

std::optional<vote_trial> read_vote_trial(const resp::reply& reply) noexcept
{
    constexpr std::size_t elements = 4;
    const auto& nodes = reply.nodes; // The root is the first one.
    const bool fits = nodes.size() == 1 + elements && nodes.front().kind == resp::kind::array &&
                      std::all_of(
                          nodes.begin() + 1, nodes.end(),
                          [](const resp::node& each) { return each.kind == resp::kind::bulk_string; });
    if (!fits)
    {
        return std::nullopt;
    }
    return vote_trial{{nodes[1].text, nodes[2].text}, {nodes[3].text, nodes[4].text}};
}

answer read_guarded_set(const resp::reply& reply) noexcept
{
    if (const std::optional<answer> refused = refusal(reply))
    {
        return *refused;
    }
    if (reply.root().kind == resp::kind::integer && (reply.integer() == 0 || is_counter(reply.integer())))
    {
        answer result;
        result.counter = static_cast<std::uint64_t>(reply.integer());
        result.vote = result.counter > 0 ? vote::granted : vote::denied;
        result.set_nothing = result.vote == vote::denied;
        return result;
    }
    return read_unexpected(reply);
}

answer read_guarded_ask(const resp::reply& reply, core::queue_position& position) noexcept
{
    if (const std::optional<answer> refused = refusal(reply))
    {
        return *refused;
    }
    const bool is_grant = reply.root().kind == resp::kind::array && reply.nodes.size() == 3 &&
                          reply.nodes[1].kind == resp::kind::integer && reply.nodes[1].integer >= 0 &&
                          reply.nodes[2].kind == resp::kind::integer && is_counter(reply.nodes[2].integer);
    if (is_grant)
    {
        answer result;
        result.vote = vote::granted;
        result.others_wait = reply.nodes[1].integer > 0;
        result.counter = static_cast<std::uint64_t>(reply.nodes[2].integer);
        return result;
    }
    return reply.root().kind == resp::kind::integer ? read_unexpected(reply) : read_ask(reply, position);
}

answer read_raise(const resp::reply& reply) noexcept
{
    const std::optional<answer> refused = refusal(reply);
    return refused ? *refused : read_extend(reply);
}

answer read_guarded_extend(const resp::reply& reply) noexcept
{
    const bool differs = reply.root().kind == resp::kind::integer && reply.integer() == guard_differs;
    return differs ? make_failed_vote(vote::failed, master_errc::other_group) : read_extend(reply);
}

bool is_guard_refusal(const answer& result) noexcept
{
    return result.vote == vote::failed && result.set_nothing;
}

void look::append(std::string& out, const guard_keys& keys, std::size_t at)
{
    switch (at)
    {
    case 0:
        resp::append_command(out, {"GET", keys.guard});
        break;
    case 1:
        resp::append_command(out, {"HGET", keys.fence, "floor"});
        break;
    case 2:
        resp::append_command(out, {"INFO", "replication"});
        break;
    default:
        resp::append_command(out, {"GET", keys.members});
        break;
    }
}

bool look::take(const resp::reply& reply)
{
    const std::size_t at = replies_++;
    if (reply.is_error())
    {
        const core::server_error error = core::classify(reply.text());
        const bool is_foreign = error == core::server_error::wrong_type;
        if (is_foreign && at == 0)
        {
            seen_.marker.emplace(); // It is there, and no marker.
        }
        else if (!is_foreign)
        {
            fail(reason_of(error), reply.text());
        }
        return true;
    }
    std::optional<std::string> text;
    switch (at)
    {
    case 0:
        return take_text(reply, seen_.marker);
    case 1:
    {
        const bool fits = take_text(reply, text);
        seen_.has_floor = text.has_value();
        return fits;
    }
    case 2:
        return take_replication(reply);
    default:
    {
        const bool fits = take_text(reply, text);
        members_ = std::move(text).value_or(std::string{});
        return fits;
    }
    }
}

void look::take_failure(const answer& none)
{
    ++failures_;
    fail(none.reason, none.text);
}

/// Records the first reason only: the others follow from it.
void look::fail(error_code why, std::string_view detail)
{
    if (!reason_)
    {
        reason_ = why;
        detail_ = detail;
    }
}

bool look::take_text(const resp::reply& reply, std::optional<std::string>& value)
{
    if (reply.root().kind == resp::kind::bulk_string)
    {
        value = reply.text();
        return true;
    }
    return reply.is_null();
}

bool look::take_replication(const resp::reply& reply)
{
    const resp::kind kind = reply.root().kind;
    if (kind != resp::kind::bulk_string && kind != resp::kind::verbatim_string)
    {
        return false;
    }
    seen_.replication_id = info_field(reply.text(), "master_replid");
    seen_.is_master = info_field(reply.text(), "role") == "master";
    return true;
}

} // namespace redlock::net
