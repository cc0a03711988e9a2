// SPDX-License-Identifier: BSL-1.0
// The commands and the messages of the wait queue.
#include "net/queue_commands.hpp"

#include "net/queue_scripts.hpp"
#include "net/trial_scripts.hpp"
#include "resp/serialise.hpp"

#include <algorithm>
#include <charconv>
#include <span>

namespace redlock::net
{

namespace
{

/// Returns whether a push has three elements: this type, this channel, and one more.
bool is_on_channel(const resp::reply& push, std::string_view type, std::string_view channel) noexcept
{
    return push.is_push() && push.nodes.size() == 4 && push.nodes[1].text == type &&
           push.nodes[2].text == channel;
}

} // namespace

std::string queue_channel(std::string_view manager_id)
{
    return std::string{"redlock:"}.append(manager_id);
}

void append_ask(std::string& out, const claim& of, const question& asked, script_form form)
{
    resp::append_command(
        out, {verb_of(form), body_of(ask_script, form), "1", of.key(), member_name{asked.member}.view(),
              of.owner_id(), decimal{asked.ttl}.view(), decimal{asked.waited}.view(),
              decimal{asked.liveness}.view(), decimal{asked.grace}.view()});
}

void append_queue_release(
    std::string& out, const claim& of, std::chrono::milliseconds grace, script_form form)
{
    resp::append_command(
        out, {verb_of(form), body_of(release_to_queue_script, form), "1", of.key(), of.owner_id(),
              decimal{grace}.view()});
}

void append_leave(
    std::string& out, const claim& of, std::chrono::milliseconds grace,
    const std::optional<queue_member>& member, script_form form)
{
    const std::optional<member_name> name = member ? std::optional{member_name{*member}} : std::nullopt;
    resp::append_command(
        out, {verb_of(form), body_of(release_to_queue_script, form), "1", of.key(), of.owner_id(),
              decimal{grace}.view(), "left", name ? name->view() : std::string_view{}});
}

void append_lost_release(
    std::string& out, const claim& of, const question& asked, std::chrono::milliseconds pause)
{
    resp::append_command(
        out, {"EVALSHA", release_to_queue_script.sha1, "1", of.key(), of.owner_id(),
              decimal{asked.grace}.view(), "lost", member_name{asked.member}.view(),
              decimal{asked.waited}.view(), decimal{asked.liveness}.view(), decimal{pause}.view()});
}

std::optional<wake_up> read_wake_up(const resp::reply& push, std::string_view channel) noexcept
{
    if (!is_on_channel(push, "message", channel) || push.nodes[3].text.size() < 2)
    {
        return std::nullopt;
    }
    const std::string_view text = push.nodes[3].text;
    wake_up found{text[0] == 'r' ? wake_reason::released : wake_reason::kicked, 0};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + 1, end, found.number);
    const bool fits = (text[0] == 'r' || text[0] == 'k') && error == std::errc{} && stop == end;
    return fits ? std::optional{found} : std::nullopt;
}

bool confirms_subscription(const resp::reply& push, std::string_view channel) noexcept
{
    return is_on_channel(push, "subscribe", channel);
}

bool is_subscription_probe(const resp::reply& push, std::string_view channel) noexcept
{
    return is_on_channel(push, "message", channel) && push.nodes[3].text == subscription_probe;
}

void append_queue_trial(std::string& out, std::string_view key_prefix)
{
    const std::string key = std::string{queue_key_prefix}.append("order:").append(key_prefix);
    resp::append_command(out, {"EVAL", queue_trial_script, "0", key});
}

std::optional<queue_refusals> read_queue_trial(const resp::reply& reply) noexcept
{
    const std::span<const resp::node> texts = reply.nodes.subspan(1);
    const bool are_texts = std::all_of(
        texts.begin(), texts.end(),
        [](const resp::node& each) { return each.kind == resp::kind::bulk_string; });
    if (reply.root().kind != resp::kind::array || !are_texts || texts.size() % 2 != 0)
    {
        return std::nullopt;
    }
    queue_refusals found;
    for (std::size_t index = 0; index < texts.size(); index += 2)
    {
        const refused_command failed{texts[index].text, texts[index + 1].text};
        refused_command& first = failed.name == "DEL" ? found.deletion : found.question;
        if (first.name.empty() && core::forbids_command(failed.error))
        {
            first = failed;
        }
    }
    return found;
}

std::string in_words(const refused_command& refused)
{
    if (refused.name.empty())
    {
        return {};
    }
    const std::string error{refused.error.substr(0, short_text::capacity)};
    return "it refuses " + std::string{refused.name.substr(0, short_text::capacity)} + " (" + error + ")";
}

} // namespace redlock::net
