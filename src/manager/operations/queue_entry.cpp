// SPDX-License-Identifier: BSL-1.0
// The entry of one acquire in the wait queue of its resource.
#include "manager/operations/queue_entry.hpp"

#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <chrono>

namespace redlock::manager
{

queue_entry::queue_entry(lock_service& service, const acquire_call& call)
    : service_{service}, call_{call}, began_{service.strand().now()}
{
}

bool queue_entry::start_waiting(runtime::async_event& wake_event)
{
    if (!waiter_ && service_.queues().has_room())
    {
        waiter_.emplace(service_.queues(), wake_event);
    }
    return waiter_.has_value();
}

net::queue_member queue_entry::member_at(std::size_t master) const noexcept
{
    return service_.member_at(master, waiter_ ? waiter_->number() : 0);
}

net::question queue_entry::question_at(std::size_t master) const
{
    using std::chrono::milliseconds;
    const auto waited = std::chrono::duration_cast<milliseconds>(service_.strand().now() - began_);
    const milliseconds liveness = waiter_ ? core::queue_liveness : milliseconds{0};
    const milliseconds grace = core::queue_grace(service_.node_timeout(call_.options.ttl));
    return {member_at(master), call_.options.ttl, waited, liveness, grace};
}

const net::question& queue_entry::next_question_at(std::size_t master)
{
    if (waiter_)
    {
        waiter_->sleep();
        waiter_->wait_at(master);
    }
    sent_ = question_at(master);
    return sent_;
}

queue_entry::place queue_entry::place_at(std::size_t master) const
{
    return {master, service_.connection_number(master), member_at(master)};
}

bool queue_entry::has_connection() const
{
    return place_ && service_.connection_number(place_->master) == place_->connection;
}

bool queue_entry::is_at_queue_master() const
{
    return has_connection() && service_.queue_master_of(call_.resource) == place_->master;
}

void queue_entry::enter(std::size_t queue_master, const core::queue_position& position)
{
    const clock::time_point now = service_.strand().now();
    const bool moved = !is_at_queue_master() || place_->rank != position.rank;
    const clock::time_point rank_changed = moved ? now : place_->rank_changed;
    place_ = place_at(queue_master);
    place_->member = sent_.member; // Messages may arrive since.
    place_->rank = position.rank;
    place_->rank_changed = rank_changed;
    report(queue_master, position);
    place_->ask_at = now + (place_->member.receives ? core::next_heartbeat(position, service_.random_number())
                                                    : core::next_poll(position, now - rank_changed));
}

void queue_entry::stay(std::size_t queue_master)
{
    if (waiter_)
    {
        place_ = place_at(queue_master);
        waiter_->wait_at(queue_master);
    }
}

void queue_entry::leave()
{
    if (has_connection())
    {
        service_.leave_queue(call_.resource, call_.options.ttl, place_->master, place_->member);
    }
    else if (place_)
    {
        // The master may still have the entry.
        service_.queues().note_departure(place_->member.number, call_.resource, call_.options.ttl);
    }
    place_.reset();
}

void queue_entry::leave_unless_at(const std::optional<std::size_t>& master)
{
    if (place_ && place_->master != master)
    {
        leave();
    }
}

/// Records the position for the report, and notifies the observer of a new one.
void queue_entry::report(std::size_t queue_master, const core::queue_position& position)
{
    const queue_position now{queue_master, position.rank, position.waiting, position.key_expires_in};
    const bool moved = !reported_ || reported_->master != now.master || reported_->ahead != now.ahead;
    reported_ = now;
    if (moved && service_.observed())
    {
        service_.notify(acquire_queued{call_.resource, now, service_.names()->at(queue_master)});
    }
}

} // namespace redlock::manager
