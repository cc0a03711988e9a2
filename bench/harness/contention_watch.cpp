// SPDX-License-Identifier: BSL-1.0
// Follows a contended resource: who holds it, who waits for it, and for how long it is idle meanwhile.
#include "harness/contention_watch.hpp"

#include "harness/statistics.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace redlock::bench
{

namespace
{

// Clients that arrive within this time have no order: the queue counts in milliseconds, and requests overtake each other
// on the way to it.
constexpr std::chrono::milliseconds same_arrival{2};

} // namespace

double contention_record::total_grants() const
{
    return std::max(1.0, std::accumulate(grants.begin(), grants.end(), 0.0));
}

contention_watch::contention_watch(std::size_t clients) : arrivals_(clients)
{
    record_.grants.resize(clients);
}

void contention_watch::begin_measurement(clock::time_point now)
{
    contention_record fresh;
    fresh.grants.resize(arrivals_.size());
    fresh.max_wait = record_.max_wait;
    fresh.first_grant = record_.first_grant;
    record_ = std::move(fresh);
    measured_since_ = now;
    if (held_since_)
    {
        held_since_ = now;
    }
    if (idle_since_)
    {
        idle_since_ = now;
        released_ = now;
    }
}

contention_record contention_watch::finish(clock::time_point now)
{
    end_hand_over(now);
    for (const auto& [arrival, client] : by_arrival_)
    {
        record_.max_wait = std::max<std::chrono::nanoseconds>(record_.max_wait, now - arrival);
    }
    if (idle_since_)
    {
        record_.idle += now - *idle_since_;
    }
    if (!granted_once_)
    {
        record_.first_grant = now - started_;
    }
    contention_record done = record_;
    done.length = now - measured_since_;
    done.hand_overs = sorted(std::move(done.hand_overs));
    done.waits = sorted(std::move(done.waits));
    return done;
}

void contention_watch::on_wait(std::size_t client, clock::time_point now)
{
    arrivals_[client] = now;
    by_arrival_.emplace(now, client);
    follow_idle(now);
}

void contention_watch::on_grant(std::size_t client, grant how, clock::time_point now)
{
    if (held_since_)
    {
        throw std::runtime_error{"two clients held the same resource at the same time"};
    }
    const clock::time_point arrival = end_wait(client, now);
    record_.waits.push_back(now - arrival);
    count_order(how, arrival);
    ++record_.grants[client];
    record_.repeated += std::exchange(last_holder_, client) == client ? 1 : 0;
    if (!std::exchange(granted_once_, true))
    {
        record_.first_grant = now - started_;
    }
    held_since_ = now;
    end_hand_over(now);
    follow_idle(now);
}

void contention_watch::on_gave_up(std::size_t client, clock::time_point now)
{
    end_wait(client, now);
    follow_idle(now);
}

void contention_watch::on_release(clock::time_point now)
{
    if (held_since_)
    {
        record_.held += now - *std::exchange(held_since_, std::nullopt);
    }
    if (!by_arrival_.empty())
    {
        released_ = now;
    }
    follow_idle(now);
}

contention_watch::clock::time_point contention_watch::end_wait(std::size_t client, clock::time_point now)
{
    const clock::time_point arrival = arrivals_[client].value();
    arrivals_[client].reset();
    by_arrival_.erase({arrival, client});
    record_.max_wait = std::max<std::chrono::nanoseconds>(record_.max_wait, now - arrival);
    return arrival;
}

void contention_watch::count_order(grant how, clock::time_point arrival)
{
    if (by_arrival_.empty() || by_arrival_.begin()->first + same_arrival >= arrival)
    {
        return;
    }
    ++record_.ahead;
    if (how == grant::waited)
    {
        ++record_.ahead_waited;
        const std::chrono::nanoseconds lead = arrival - by_arrival_.begin()->first;
        record_.max_lead = std::max(record_.max_lead, lead);
    }
}

void contention_watch::end_hand_over(clock::time_point now)
{
    if (released_)
    {
        record_.hand_overs.push_back(now - *std::exchange(released_, std::nullopt));
    }
}

void contention_watch::follow_idle(clock::time_point now)
{
    const bool idle = !held_since_ && !by_arrival_.empty();
    if (idle && !idle_since_)
    {
        idle_since_ = now;
    }
    else if (!idle && idle_since_)
    {
        record_.idle += now - *std::exchange(idle_since_, std::nullopt);
    }
}

} // namespace redlock::bench
