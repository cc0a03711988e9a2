// SPDX-License-Identifier: BSL-1.0
// The connection to one master: sending commands. A command that can't be sent leads to a vote within the call.
#include "net/connection.hpp"

namespace redlock::net
{

/// Returns the reason why the pipeline refused a command of this size.
error_code connection::full(std::size_t bytes) const noexcept
{
    return commands_.has_room(bytes) ? master_errc::too_many_outstanding_keys : master_errc::write_queue_full;
}

/// Returns whether a command that may create a key can be sent. If not, delivers the vote. Inlined, because every SET
/// passes it.
[[gnu::always_inline]] inline bool
connection::may_claim(claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (!ready())
    {
        votes.on_vote(
            index_, make_failed_vote(vote::unsent, last_failure_.reason, last_failure_.detail), now);
        return false;
    }
    const bool fits = commands_.has_room(command.size());
    if (!fits || !outstanding_.has_room(of))
    {
        const error_code why = fits ? master_errc::too_many_outstanding_keys : master_errc::write_queue_full;
        votes.on_vote(index_, make_failed_vote(vote::unsent, why), now);
        return false;
    }
    strand_.at_step_end(*this);
    return true;
}

void connection::send_set(claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_claim(of, command, votes, now))
    {
        commands_.push_set(of, command, &votes);
    }
}

void connection::send_ask(claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_claim(of, command, votes, now))
    {
        commands_.push_ask(of, command, votes);
    }
}

void connection::send_guarded_set(
    claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_claim(of, command, votes, now))
    {
        commands_.push_guarded_set(of, command, votes);
    }
}

/// Returns whether the connection is ready. If not, delivers the vote.
bool connection::may_send(vote_sink& votes, clock::time_point now)
{
    if (!ready())
    {
        votes.on_vote(
            index_, make_failed_vote(vote::unsent, last_failure_.reason, last_failure_.detail), now);
    }
    return ready();
}

/// Writes a command that was queued, or delivers the vote if there was no room for it.
void connection::sent_if(bool has_room, std::size_t bytes, vote_sink& votes, clock::time_point now)
{
    if (has_room)
    {
        strand_.at_step_end(*this);
        return;
    }
    votes.on_vote(index_, make_failed_vote(vote::unsent, full(bytes)), now);
}

void connection::send_raise(claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_send(votes, now))
    {
        sent_if(commands_.push_raise(of, command, votes), command.size(), votes, now);
    }
}

void connection::send_extend(claim& of, std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_send(votes, now))
    {
        sent_if(commands_.push_extend(of, command, votes), command.size(), votes, now);
    }
}

void connection::send_query(std::string_view command, vote_sink& votes, clock::time_point now)
{
    if (may_send(votes, now))
    {
        sent_if(commands_.push_query(command, votes), command.size(), votes, now);
    }
}

void connection::send_release(
    claim& of, const release_command& command, vote_sink* votes, clock::time_point now)
{
    if (takes_releases() && commands_.push_release(of, command, votes))
    {
        strand_.at_step_end(*this);
        return;
    }
    outstanding_.mark_due(of);
    if (votes != nullptr)
    {
        const error_code why = takes_releases() ? full(command.text.size()) : last_failure_.reason;
        votes->on_vote(index_, make_failed_vote(vote::unsent, why, last_failure_.detail), now);
    }
}

void connection::rejoin(claim& of, std::string_view command)
{
    if (ready() && outstanding_.has_room(of) && commands_.has_room(command.size()))
    {
        commands_.push_set(of, command, nullptr);
        strand_.at_step_end(*this);
    }
}

} // namespace redlock::net
