// SPDX-License-Identifier: BSL-1.0
// The commands of a round, and the effect of an extension's votes on its lease.
#include "manager/lock_service.hpp"

#include <utility>

namespace redlock::manager
{

detail::lease_state_ptr lock_service::make_lease_state(std::string_view resource)
{
    detail::lease_state_ptr fresh{handle_->take_lease_state()};
    fresh->assign(handle_, *outside_, options_.key_prefix, resource);
    return fresh;
}

awaited_round lock_service::begin_round(
    redlock::operation what, lease_state& lease, std::chrono::milliseconds ttl,
    runtime::async_event* listener)
{
    std::unique_ptr<round> fresh;
    if (unused_rounds_.empty())
    {
        fresh = std::make_unique<round>(*this, connections_.size());
    }
    else
    {
        fresh = std::move(unused_rounds_.back());
        unused_rounds_.pop_back();
        if (!unused_rounds_.empty())
        {
            runtime::prefetch(unused_rounds_.back().get(), sizeof(round));
        }
    }
    fresh->begin(what, lease, ttl, listener);
    return awaited_round{round_ptr{fresh.release()}};
}

awaited_round
lock_service::send_sets(lease_state& lease, std::chrono::milliseconds ttl, runtime::async_event& listener)
{
    lease.ttl = ttl;
    awaited_round votes = begin_round(operation::acquire, lease, ttl, &listener);
    if (guard_)
    {
        for (std::size_t master = 0; master < connections_.size(); ++master)
        {
            send_guarded(*votes, master);
        }
    }
    else
    {
        command_.clear();
        net::append_set(command_, lease, ttl);
        for (const auto& each : connections_)
        {
            each->send_set(lease, command_, *votes, votes->started());
        }
    }
    votes->await_votes();
    return votes;
}

bool lock_service::append_guarded(
    std::string& out, const round& of, std::size_t master, net::script_form form, net::answer& refused) const
{
    const std::optional<net::voting_terms> terms =
        guard_->terms(master, of.ttl(), of.hint(), strand_.now(), refused);
    if (terms && master == of.queue_master())
    {
        net::append_guarded_ask(out, of.lease(), guard_->keys(), *of.question(), *terms, form);
    }
    else if (terms)
    {
        net::append_guarded_set(out, of.lease(), guard_->keys(), of.ttl(), *terms, form);
    }
    return terms.has_value();
}

/// Asks a master for its vote in guarded mode.
void lock_service::send_guarded(round& votes, std::size_t master)
{
    command_.clear();
    net::answer refused;
    if (!append_guarded(command_, votes, master, net::script_form::digest, refused))
    {
        votes.on_vote(master, refused, strand_.now());
    }
    else if (master == votes.queue_master())
    {
        connections_[master]->send_ask(votes.lease(), command_, votes, strand_.now());
    }
    else
    {
        connections_[master]->send_guarded_set(votes.lease(), command_, votes, strand_.now());
    }
}

bool lock_service::append_raise(
    std::string& out, const round& of, std::size_t master, std::uint64_t token, net::script_form form) const
{
    const bool is_armed = guard_->is_armed(master);
    if (is_armed)
    {
        net::append_raise(out, of.lease(), guard_->keys(), guard_->marker_of(master), token, form);
    }
    return is_armed;
}

void lock_service::send_raise(round& of, std::size_t master, std::uint64_t token, net::vote_sink& votes)
{
    command_.clear();
    if (append_raise(command_, of, master, token, net::script_form::digest))
    {
        connections_[master]->send_raise(of.lease(), command_, votes, strand_.now());
    }
    else
    {
        votes.on_vote(master, guard_->unarmed_vote(master), strand_.now());
    }
}

void lock_service::append_extend(
    std::string& out, const lease_state& lease, std::chrono::milliseconds ttl, net::script_form form) const
{
    if (guard_)
    {
        net::append_guarded_extend(out, lease, guard_->keys(), ttl, guard_->identity()->name, form);
    }
    else
    {
        net::append_extend(out, lease, ttl, form);
    }
}

awaited_round lock_service::send_extensions(
    lease_state& lease, std::chrono::milliseconds ttl, runtime::async_event* listener)
{
    awaited_round votes = begin_round(operation::extend, lease, ttl, listener);
    command_.clear();
    append_extend(command_, lease, ttl, net::script_form::digest);
    for (const auto& each : connections_)
    {
        each->send_extend(lease, command_, *votes, votes->started());
    }
    votes->await_votes();
    return votes;
}

awaited_round lock_service::send_releases(lease_state& lease, runtime::async_event& listener)
{
    awaited_round votes = begin_round(operation::release, lease, lease.ttl, &listener);
    command_.clear();
    net::append_release(command_, lease, net::script_form::digest);
    const std::size_t plain = command_.size();
    net::append_queue_release(
        command_, lease, core::queue_grace(votes->node_timeout()), net::script_form::digest);
    const net::release_command for_key{std::string_view{command_}.substr(0, plain), false};
    const net::release_command for_queue{std::string_view{command_}.substr(plain), true};
    const std::uint64_t key = core::stable_hash(lease.key());
    const std::optional<std::size_t> queue_master = queue_master_of(key, votes->started());
    const bool everywhere = options_.order == order::strict || queues_.looks_everywhere(key);
    const std::optional<std::size_t> first =
        everywhere && queue_master ? draw_second_queue(key, *queue_master) : std::nullopt;
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        if (first && master == queue_master)
        {
            continue;
        }
        const bool looks = everywhere || master == queue_master;
        connections_[master]->send_release(lease, looks ? for_queue : for_key, &*votes, votes->started());
    }
    votes->await_votes();
    if (first)
    {
        votes->hold_back(*queue_master, *first);
    }
    return votes;
}

/// Returns the master of a second queue of the resource on one release in eight. Its first client is woken a round trip
/// ahead of the queue master's. Otherwise it would lose every race if the queue master is nearer.
std::optional<std::size_t>
lock_service::draw_second_queue(std::uint64_t key, std::size_t queue_master) const noexcept
{
    constexpr std::uint64_t one_in = 8;
    const std::optional<std::size_t> second = queues_.second_queue(key, strand_.now());
    return second && second != queue_master && random_number() % one_in == 0 ? second : std::nullopt;
}

void lock_service::send_held_back_release(round& of, std::size_t master) noexcept
{
    command_.clear();
    net::append_queue_release(
        command_, of.lease(), core::queue_grace(of.node_timeout()), net::script_form::digest);
    connections_[master]->send_release(of.lease(), {command_, true}, &of, strand_.now());
}

void lock_service::send_query(std::size_t master, std::string_view command, net::vote_sink& votes)
{
    connections_[master]->send_query(command, votes, strand_.now());
}

void lock_service::broadcast(std::string_view command, net::vote_sink& votes)
{
    const clock::time_point now = strand_.now();
    for (const auto& each : connections_)
    {
        each->send_query(command, votes, now);
    }
}

void lock_service::give_back(lease_state& lease)
{
    const clock::time_point now = strand_.now();
    command_.clear();
    net::append_release(command_, lease, net::script_form::digest);
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        if (lease.at(master).state != net::outstanding_state::none)
        {
            connections_[master]->send_release(lease, {command_, false}, nullptr, now);
        }
    }
}

void lock_service::on_extension_vote(round& of, std::size_t master) noexcept
{
    lease_state& held = of.lease();
    if (held.phase() != lease_phase::held)
    {
        return;
    }
    const bool refused = of.ballot().of(master) == vote::denied;
    if (of.outcome() == core::verdict::won)
    {
        const bool just_won = of.ballot().of(master) == vote::granted &&
                              of.ballot().count(vote::granted) == of.ballot().quorum();
        if (just_won)
        {
            confirm_extension(of);
        }
        else if (refused)
        {
            rejoin(of, master);
        }
    }
    else if (of.ballot().disowned() && of.started() >= held.confirmed())
    {
        disown(held, of);
    }
}

void lock_service::confirm_extension(round& of) noexcept
{
    lease_state& held = of.lease();
    const clock::time_point now = strand_.now();
    const clock::time_point until = core::valid_until(of.started(), of.ttl(), options_.drift_factor);
    // A confirmation counts only while the lease is still valid: after that, another client may have held the resource.
    // Nor may it revoke a loss that is due, if this process was stopped while the replies were waiting.
    if (held.valid_until() <= now || until <= now || (held.kept && held.kept->ends() <= now))
    {
        return;
    }
    held.extend(until, of.started());
    held.ttl = of.ttl();
    held.failed.reset();
    if (held.kept)
    {
        held.kept->on_extended(of.started(), of.ttl());
    }
    if (observed())
    {
        notify(
            lease_extended{std::string{held.resource()}, std::string{held.owner_id()}, held.valid_until()});
    }
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        if (of.ballot().of(master) == vote::denied)
        {
            rejoin(of, master);
        }
    }
}

/// Sends the key again to a master that doesn't have it. Only while a quorum has just confirmed the lease, so that an
/// expired lease is never set again, and for as long as it is valid at least. The vote of the master isn't changed.
void lock_service::rejoin(round& of, std::size_t master)
{
    lease_state& held = of.lease();
    const clock::time_point now = strand_.now();
    if (held.valid_until() <= now || held.confirmed() < of.started())
    {
        return;
    }
    // The validity may be that of an earlier extension, which was longer.
    const std::chrono::milliseconds left =
        core::ttl_for(core::remaining(held.valid_until(), now), options_.drift_factor);
    command_.clear();
    net::append_set(command_, held, std::max(of.ttl(), left));
    connections_[master]->rejoin(held, command_);
}

} // namespace redlock::manager
