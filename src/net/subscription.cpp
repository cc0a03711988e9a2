// SPDX-License-Identifier: BSL-1.0
// The subscription of a manager's channel on one connection.
#include "net/subscription.hpp"

#include "core/server_error.hpp"
#include "net/queue_commands.hpp"
#include "resp/serialise.hpp"

#include <algorithm>

namespace redlock::net
{

void subscription::request(std::string& out, std::string_view channel)
{
    resp::append_command(out, {"SUBSCRIBE", channel});
    resp::append_command(out, {"PUBLISH", channel, subscription_probe});
    resp::append_command(out, {"HELLO", "3"});
    pending_ = true;
    count_ = 0;
}

bool subscription::on_reply(const resp::reply& reply) noexcept
{
    const resp::kind kind = reply.root().kind;
    if (kind == resp::kind::map)
    {
        pending_ = false;
        state_ = end_request();
        return true;
    }
    if (count_ == answers_.size() || (!reply.is_error() && kind != resp::kind::integer))
    {
        return false;
    }
    answer& next = answers_[count_++];
    if (reply.is_error())
    {
        const bool passing = core::after_error(core::classify(reply.text())) == core::release_after::again;
        next = passing ? answer::refused_for_now : answer::refused;
    }
    else
    {
        next = answer::number;
        has_receiver_ = reply.integer() > 0;
    }
    return true;
}

/// SUBSCRIBE has either been confirmed by a push on this connection or been refused.
subscription::state subscription::end_request() const noexcept
{
    const auto end = answers_.begin() + static_cast<std::ptrdiff_t>(count_);
    const bool fits = confirmed_ ? count_ > 0 : count_ == 2 && answers_[0] != answer::number;
    if (!fits || std::find(answers_.begin(), end, answer::refused) != end)
    {
        return state::refused;
    }
    // A server that confirmed it earlier may refuse it now, which changes nothing.
    if (!confirmed_ || answers_[count_ - 1] == answer::refused_for_now)
    {
        return state::put_off;
    }
    return has_receiver_ ? state::proven : state::refused;
}

bool subscription::on_push(const resp::reply& push, std::string_view channel) noexcept
{
    const bool confirms = pending_ && confirms_subscription(push, channel);
    confirmed_ = confirmed_ || confirms;
    // Some servers send the message after the reply to PUBLISH.
    return confirms || (pending_ && is_subscription_probe(push, channel));
}

} // namespace redlock::net
