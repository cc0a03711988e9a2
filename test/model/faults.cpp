// SPDX-License-Identifier: BSL-1.0
// Time, and what can happen to servers.

#include "protocol.hpp"

#include <algorithm>

namespace model
{

bool protocol::fault_can(const state& now, const action& step) const
{
    const server& there = now.servers[step.at];
    const auto may = [&](number f) { return now.left.faults != 0 && (s_.fault_kinds & f) != 0; };
    switch (step.what)
    {
    case kind::other_acquire:
        return now.left.others != 0 && is_good(there, there.db[0].guard.group);
    case kind::flush:
        return may(fault::flush) && !(there.db == decltype(there.db){});
    case kind::replace:
        return may(fault::replace) && !(there.db == decltype(there.db){});
    case kind::restart:
        return may(fault::restart);
    case kind::swap:
        return may(fault::swap);
    case kind::save:
        return now.left.saves != 0 && there.copy != there.db;
    case kind::restore:
        return may(fault::restore) && there.copy != decltype(there.copy){};
    case kind::power_cut:
        return may(fault::power_cut);
    case kind::drop_hash:
        return may(fault::drop_hash) && there.db[0].floor != missing;
    case kind::vanish:
        return now.left.vanishing != 0 && there.db[0].owner != 0;
    case kind::jump:
        return now.left.jumps != 0;
    default:
        return false;
    }
}

void protocol::fault_does(state& now, const action& step) const
{
    server& there = now.servers[step.at];
    const auto empty = [&] { there.db = {}; };
    switch (step.what)
    {
    case kind::other_acquire:
        now.left.others--;
        there.db[0].slot = static_cast<number>(counter_of(there.db[0]) + 1);
        return;
    case kind::save:
        now.left.saves--;
        there.copy = there.db;
        return;
    case kind::vanish:
        now.left.vanishing--;
        now.exclusive = false;
        there.db[0].owner = there.db[0].ttl = 0;
        return;
    case kind::jump:
        now.left.jumps--;
        there.jumps++;
        for (data& d : there.db)
            d.owner = d.ttl = 0;
        return;
    default:
        break;
    }
    now.left.faults--;
    switch (step.what)
    {
    case kind::flush:
        empty();
        return lose(now, step.at, false);
    case kind::replace:
        empty();
        return lose(now, step.at, true);
    case kind::restart:
        return lose(now, step.at, true);
    case kind::swap:
        std::swap(there.db[0], there.db[1]);
        return;
    case kind::restore:
        there.db = there.copy;
        return lose(now, step.at, true);
    case kind::power_cut:
        there.db = there.durable;
        return lose(now, step.at, true);
    case kind::drop_hash:
        there.db[0].slot = 0;
        there.db[0].floor = missing;
        return;
    default:
        return;
    }
}

void protocol::lose(state& now, int at, bool new_replid) const
{
    server& there = now.servers[at];
    if (new_replid)
        there.replid = ++there.next_replid;
    for (int g = 1; g < max_groups; g++)
        if (contains(s_.lists[g], at))
            there.since_loss = std::max(there.since_loss, s_.max_ttls[g]);
}

// Whether a tick changes anything.
bool protocol::can_tick(const state& now) const
{
    if (s_.clocks)
        return now.ticks != 0;
    bool running = false;
    for (const attempt& a : now.attempts)
        running |= a.validity != 0;
    for (const guardian& g : now.guardians)
        for (const quarantine_watch& w : g.watches)
            running |= w.wait != 0;
    for (const run& r : now.runs)
        running |= r.wait != 0;
    for (const server& s : now.servers)
    {
        running |= s.since_loss != 0;
        for (const auto* dbs : {&s.db, &s.copy})
            for (const data& d : *dbs)
                running |= d.ttl != 0;
    }
    return running;
}

static void expire(data& d)
{
    if (d.ttl != 0 && --d.ttl == 0)
        d.owner = 0;
}

static void count_down(number& left)
{
    if (left != 0)
        left--;
}

void protocol::tick_attempt(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    if (mine.now != phase::acquiring && mine.now != phase::held)
        return;
    count_down(mine.validity);
    count_down(mine.extending);
    if (mine.extending == 0)
        for (vote& v : mine.votes)
            v.extend = v.extend == extension::rejoining ? v.extend : extension::none;
    if (mine.validity != 0)
        return;
    const bool raising = mine.now == phase::acquiring && mine.token != 0 && !has(rule::validity_last);
    const bool extending = mine.now == phase::held && !has(rule::expired_not_extended);
    if (!raising && !extending)
        end(now, who);
}

void protocol::tick(state& now) const
{
    for (server& s : now.servers)
    {
        for (auto* dbs : {&s.db, &s.copy, &s.durable})
            for (data& d : *dbs)
                expire(d);
        if ((s_.fault_kinds & fault::power_cut) != 0)
            s.durable = s.db;
        count_down(s.since_loss);
    }
    for (int who = 0; who < attempts(); who++)
        tick_attempt(now, who);
    for (guardian& g : now.guardians)
        for (quarantine_watch& w : g.watches)
        {
            count_down(w.wait);
            w.settle = w.settle == 2 ? number{1} : w.settle;
        }
    for (run& r : now.runs)
        count_down(r.wait);
    if (s_.clocks)
    {
        now.time = static_cast<number>(now.time + s_.tick_length);
        now.ticks--;
    }
}

} // namespace model
