// SPDX-License-Identifier: BSL-1.0
// The subscription of a manager's channel on one connection.
#include "net/subscription.hpp"

#include "core/server_error.hpp"
#include "net/queue_commands.hpp"
#include "resp/serialise.hpp"

namespace redlock::net
{

void subscription::request(std::string& out, std::string_view channel)
{
    resp::append_command(out, {"SUBSCRIBE", channel});
    resp::append_command(out, {"PUBLISH", channel, subscription_probe});
    state_ = state::requested;
    pending_ = true;
}

void subscription::refuse(std::string_view error) noexcept
{
    const bool passing = core::after_error(core::classify(error)) == core::release_after::again;
    state_ = passing ? state::put_off : state::refused;
}

bool subscription::on_reply(const resp::reply& reply)
{
    if (reply.is_error() && state_ == state::requested)
    {
        refuse(reply.text()); // That to PUBLISH is still to come.
        return true;
    }
    pending_ = false;
    if (reply.is_error())
    {
        // A permanent refusal of SUBSCRIBE stays one.
        if (state_ != state::refused)
        {
            refuse(reply.text());
        }
        return true;
    }
    if (reply.root().kind != resp::kind::integer)
    {
        return false;
    }
    const bool confirmed = state_ == state::confirmed || state_ == state::received;
    if (confirmed && reply.integer() > 0)
    {
        state_ = state::proven;
    }
    else if (state_ != state::put_off)
    {
        state_ = state::refused;
    }
    return true;
}

bool subscription::on_push(const resp::reply& push, std::string_view channel) noexcept
{
    if (state_ == state::requested && confirms_subscription(push, channel))
    {
        state_ = state::confirmed;
        return true;
    }
    // The message comes before the reply to PUBLISH. Some servers send it after the reply: then it counts as unsolicited.
    if (state_ == state::confirmed && is_subscription_probe(push, channel))
    {
        state_ = state::received;
        return true;
    }
    return false;
}

} // namespace redlock::net
