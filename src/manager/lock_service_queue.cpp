// SPDX-License-Identifier: BSL-1.0
// The wait queue: questions to the queue master, and leaving.
#include "manager/lock_service.hpp"

#include "core/queue_timing.hpp"

#include <utility>

namespace redlock::manager
{

/// Returns whether a master can be the queue master of any resource, once its clock was read. Inlined, because every release
/// passes it.
[[gnu::always_inline]] inline bool lock_service::can_be_queue_master(std::size_t master) const noexcept
{
    const guard* const group = guard_.get();
    return connections_[master]->queues() &&
           (group == nullptr || (group->is_armed(master) && !group->is_suspected(master)));
}

/// Wakes all waiting acquires if the masters that can be their queue master have changed: each of them looks at all masters.
void lock_service::reconsider_queue_masters() noexcept
{
    std::bitset<max_masters> able;
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        able[master] = can_be_queue_master(master);
    }
    if (std::exchange(queue_masters_, able) != able)
    {
        queues_.reconsider_all();
    }
}

std::optional<std::size_t>
lock_service::queue_master_of(std::uint64_t key, clock::time_point now) const noexcept
{
    const bool doubts = queues_.doubts(now);
    std::optional<std::size_t> found;
    std::pair<bool, std::uint64_t> highest{};
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        const bool passed_over = !can_be_queue_master(master) ||
                                 (guard_ && !connections_[master]->clock_readings().last()) ||
                                 (doubts && queues_.is_passed_over(master, key, now));
        // One that refuses releases is the last choice.
        const std::pair weight{!connections_[master]->refuses_releases(), queues_.weight(master, key)};
        if (!passed_over && weight > highest)
        {
            found = master;
            highest = weight;
        }
    }
    return found;
}

net::queue_member lock_service::member_at(std::size_t master, std::uint64_t number) const noexcept
{
    return {queues_.manager_id(), number, connections_[master]->subscribed()};
}

std::chrono::milliseconds lock_service::grace_for(std::chrono::milliseconds ttl) const noexcept
{
    return core::queue_grace(node_timeout(ttl));
}

/// Returns the hash of the key of a resource.
std::uint64_t lock_service::hash_of(std::string_view resource) const noexcept
{
    return core::stable_hash(resource, core::stable_hash(options_.key_prefix));
}

std::optional<std::size_t> lock_service::queue_master_of(std::string_view resource) const noexcept
{
    return queue_master_of(hash_of(resource), strand_.now());
}

bool lock_service::is_contended(std::string_view resource) const noexcept
{
    return queues_.any_contended() && queues_.is_contended(hash_of(resource));
}

void lock_service::note_contention(const lease_state& lease, std::size_t master, bool others_wait) noexcept
{
    const std::uint64_t key = core::stable_hash(lease.key());
    const clock::time_point now = strand_.now();
    queues_.note(key, others_wait, now);
    if (others_wait && master != queue_master_of(key, now))
    {
        queues_.note_second_queue(key, master, now);
    }
}

void lock_service::overrule(std::string_view resource, std::size_t queue_master)
{
    queues_.overrule(queue_master, hash_of(resource), strand_.now());
}

awaited_round lock_service::ask(
    lease_state& lease, const net::question& asked, std::size_t queue_master, runtime::async_event& listener)
{
    lease.ttl = asked.ttl;
    awaited_round votes = begin_round(operation::acquire, lease, asked.ttl, &listener);
    votes->await_queue_master(queue_master, asked);
    if (guard_)
    {
        send_guarded(*votes, queue_master);
        return votes;
    }
    command_.clear();
    net::append_ask(command_, lease, asked, net::script_form::digest);
    connections_[queue_master]->send_ask(lease, command_, *votes, votes->started());
    return votes;
}

void lock_service::send_other_sets(round& begun)
{
    command_.clear();
    net::append_set(command_, begun.lease(), begun.ttl());
    const clock::time_point now = strand_.now();
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        if (begun.ballot().of(master) != vote::pending || master == begun.queue_master())
        {
            continue;
        }
        if (guard_)
        {
            send_guarded(begun, master);
        }
        else
        {
            connections_[master]->send_set(begun.lease(), command_, begun, now);
        }
    }
    begun.await_votes();
}

awaited_round lock_service::send_sets_and_ask(
    lease_state& lease, const net::question& asked, std::size_t queue_master, runtime::async_event& listener)
{
    awaited_round votes = ask(lease, asked, queue_master, listener);
    send_other_sets(*votes);
    return votes;
}

/// Sends what `append` appends to the queue master, and the plain release to the other masters that may have the key.
template <class Append>
void lock_service::give_back_with(lease_state& lease, std::size_t queue_master, Append append)
{
    const clock::time_point now = strand_.now();
    command_.clear();
    net::append_release(command_, lease, net::script_form::digest);
    const std::size_t plain = command_.size();
    append(command_);
    const net::release_command for_key{std::string_view{command_}.substr(0, plain), false};
    const net::release_command for_queue{std::string_view{command_}.substr(plain), true};
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        if (master == queue_master)
        {
            connections_[master]->send_release(lease, for_queue, nullptr, now);
        }
        else if (lease.at(master).state == net::outstanding_state::sent)
        {
            connections_[master]->send_release(lease, for_key, nullptr, now);
        }
    }
}

void lock_service::give_back_and_leave(
    lease_state& lease, std::size_t queue_master, const std::optional<net::queue_member>& member)
{
    if (member)
    {
        queues_.note_departure(member->number, lease.resource(), lease.ttl);
    }
    give_back_with(
        lease, queue_master,
        [&](std::string& out) { net::append_leave(out, lease, grace_for(lease.ttl), member); });
}

void lock_service::give_back_and_stay(
    lease_state& lease, std::size_t queue_master, const net::question& asked, std::chrono::milliseconds pause)
{
    give_back_with(
        lease, queue_master, [&](std::string& out) { net::append_lost_release(out, lease, asked, pause); });
}

void lock_service::leave_queue(
    std::string_view resource, std::chrono::milliseconds ttl, std::size_t queue_master,
    const net::queue_member& member)
{
    // With an owner id that no key has.
    const detail::lease_state_ptr unowned = make_lease_state(resource);
    unowned->ttl = ttl;
    leave_queue(*unowned, queue_master, member);
}

void lock_service::leave_queue(lease_state& lease, std::size_t queue_master, const net::queue_member& member)
{
    queues_.note_departure(member.number, lease.resource(), lease.ttl);
    send_leave(lease, queue_master, member);
}

void lock_service::send_leave(lease_state& lease, std::size_t queue_master, const net::queue_member& member)
{
    command_.clear();
    net::append_leave(command_, lease, grace_for(lease.ttl), member);
    ++farewells_.pending;
    connections_[queue_master]->send_release(lease, {command_, true}, &farewells_, strand_.now());
}

void farewells::on_vote(std::size_t, const net::answer&, clock::time_point) noexcept
{
    --pending;
    service_.notify_shutdown();
}

bool lock_service::on_wake_up(std::size_t master, const net::wake_up& message)
{
    waiter* const found = queues_.find(message.number);
    const clock::time_point now = strand_.now();
    if (found != nullptr && found->waits_at(master))
    {
        found->wake(message.why);
    }
    // The master expects an acquire that has ended, or waits at another one. Without an answer, it would serve no other for
    // the grace.
    else if (wait_queues::departure* const departed = queues_.find_departure(message.number);
             departed != nullptr && !departed->was_answered(master, connection_numbers_[master], now))
    {
        departed->answered_at = master;
        departed->answered_on = connection_numbers_[master];
        departed->answered_until = now + grace_for(departed->ttl);
        const detail::lease_state_ptr unowned = make_lease_state(departed->resource);
        unowned->ttl = departed->ttl;
        send_leave(*unowned, master, member_at(master, message.number));
    }
    return queues_.was_issued(message.number);
}

} // namespace redlock::manager
