// SPDX-License-Identifier: BSL-1.0
// The commands with which a master is put into quarantine and armed, and their replies.
#include "net/arming_commands.hpp"

#include "net/arming_scripts.hpp"
#include "net/decimal.hpp"
#include "resp/serialise.hpp"

#include <initializer_list>
#include <vector>

namespace redlock::net
{

namespace
{

void append_script(
    std::string& out, const script& what, script_form form, const guard_keys& keys,
    std::initializer_list<std::string_view> arguments)
{
    std::vector<std::string_view> words{verb_of(form), body_of(what, form), "3",
                                        keys.members,  keys.guard,          keys.fence};
    words.insert(words.end(), arguments);
    resp::append_command(out, words);
}

/// `own` is the answer that only this script has.
error_code refusal_reason(std::int64_t answer, int own) noexcept
{
    if (answer == guard_differs || answer == incarnation_differs)
    {
        return master_errc::incarnation_changed;
    }
    return answer == own ? master_errc::command_failed : master_errc::protocol_error;
}

/// Translates a reply that isn't the expected one: an error, or a negative answer.
arming_reply read_refusal(const resp::reply& reply, int own) noexcept
{
    arming_reply result;
    if (reply.is_error())
    {
        result.error = core::classify(reply.text());
        result.reason = reason_of(result.error);
        result.detail = reply.text();
        return result;
    }
    const bool is_answer = reply.root().kind == resp::kind::integer;
    result.reason = refusal_reason(is_answer ? reply.integer() : 0, own);
    if (is_answer && result.reason != master_errc::protocol_error)
    {
        result.refusal = static_cast<int>(reply.integer());
    }
    return result;
}

} // namespace

void append_quarantine(
    std::string& out, const guard_keys& keys, std::string_view seen, const core::marker& begun, int database,
    const core::member_record& members, script_form form)
{
    const std::string marker = core::to_text(begun);
    const std::string record = core::to_text(members);
    append_script(out, quarantine_script, form, keys, {seen, marker, decimal{database}.view(), record});
}

void append_largest_counter(
    std::string& out, const guard_keys& keys, std::string_view marker, script_form form)
{
    append_script(out, largest_counter_script, form, keys, {marker});
}

void append_arm(
    std::string& out, const guard_keys& keys, const core::marker& waited_for, std::uint64_t floor,
    const core::member_record& members, script_form form)
{
    const std::string marker = core::to_text(waited_for);
    const std::string armed = core::to_text(core::armed(waited_for));
    const std::string record = core::to_text(members);
    append_script(out, arm_script, form, keys, {marker, armed, decimal{floor}.view(), record});
}

arming_reply read_quarantine(const resp::reply& reply) noexcept
{
    if (reply.root().kind != resp::kind::bulk_string)
    {
        return read_refusal(reply, databases_unknown);
    }
    arming_reply result;
    result.marker = reply.text();
    return result;
}

arming_reply read_counter(const resp::reply& reply) noexcept
{
    if (reply.root().kind != resp::kind::integer || reply.integer() < 0 || reply.integer() > max_counter)
    {
        return read_refusal(reply, may_evict);
    }
    arming_reply result;
    result.counter = static_cast<std::uint64_t>(reply.integer());
    return result;
}

} // namespace redlock::net
