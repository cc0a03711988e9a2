// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource: each acquires it, holds it briefly, pauses and acquires it again.
#pragma once

#include "harness/contender.hpp"
#include "harness/contention_watch.hpp"

#include <chrono>
#include <cstddef>
#include <functional>

namespace redlock::bench
{

/// A uniformly distributed time.
struct time_range
{
    std::chrono::microseconds min;
    std::chrono::microseconds max;

    std::chrono::microseconds mean() const { return (min + max) / 2; }
};

/// What the clients do.
struct contention_load
{
    std::size_t clients;
    time_range hold;
    time_range pause;                  // Between a release and the next acquire of a client.
    bool greedy = false;               // The first client never pauses.
    std::chrono::milliseconds start;   // All clients begin at once. Not measured, except the first grant.
    std::chrono::milliseconds measure; // The measured time, which follows.
};

/// What servers have done so far.
struct server_work
{
    double rounds = 0;   // Of acquires, at all masters.
    double commands = 0; // To lock and release, of all masters.
    std::chrono::nanoseconds cpu{0};

    friend server_work operator-(const server_work& one, const server_work& other)
    {
        return {one.rounds - other.rounds, one.commands - other.commands, one.cpu - other.cpu};
    }
};

/// The result of one round.
struct contention_round : contention_record
{
    server_work servers;

    double seconds() const { return std::chrono::duration<double>{length}.count(); }
};

/// Measures one round of new clients. Throws if two clients hold the resource at the same time, or if the round doesn't
/// end.
contention_round
compete(const contender_factory& make, const contention_load& load, const std::function<server_work()>& work);

} // namespace redlock::bench
