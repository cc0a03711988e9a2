// SPDX-License-Identifier: BSL-1.0
// The change of a group by `redlock provision --change`.

#include "protocol.hpp"

#include <algorithm>

namespace model
{

bool protocol::run_can(const state& now, const action& step) const
{
    const run& mine = now.runs[step.who];
    switch (step.what)
    {
    case kind::move:
        return can_move(now, step.who, step.at);
    case kind::move_wait:
        return can_wait(now, step.who);
    case kind::move_check:
        return can_check(now, step.who, step.at);
    case kind::move_decide:
        return can_decide(now, step.who);
    case kind::move_arm:
    {
        const server& there = now.servers[step.at];
        const marker& text = mine.servers[step.at].text;
        return mine.now == stage::arming && text.state == standing::quarantine &&
               there.db[0].guard.state == standing::quarantine && is_same_text(there.db[0].guard, text) &&
               text.replid == there.replid;
    }
    default:
        return false;
    }
}

invariant protocol::run_does(state& now, const action& step) const
{
    switch (step.what)
    {
    case kind::move:
        move(now, step.who, step.at);
        break;
    case kind::move_wait:
        begin_wait(now, step.who);
        break;
    case kind::move_check:
        check_moved(now, step.who, step.at);
        break;
    case kind::move_decide:
        decide_floor(now, step.who);
        break;
    case kind::move_arm:
        return arm(now, step.at, now.runs[step.who].largest);
    default:
        break;
    }
    return invariant::none;
}

// The servers of all groups that the run replaces.
mask protocol::old_list(const run& mine) const
{
    mask list = 0;
    for (int g = 1; g < max_groups; g++)
        if (contains(mine.old_groups, g))
            list |= s_.lists[g];
    return list;
}

bool protocol::can_move(const state& now, int who, int at) const
{
    const run& mine = now.runs[who];
    const change& wanted = nth(s_.runs, who);
    const marker& guard = now.servers[at].db[0].guard;
    const mask from = mine.old_groups != 0 ? old_list(mine) : s_.lists[wanted.from];
    if (mine.now == stage::arming || !contains(from | s_.lists[wanted.to], at))
        return false;
    const marker& text = mine.servers[at].text;
    if (text.state != standing::none && guard == text && guard.replid == now.servers[at].replid)
        return false;
    const bool others =
        guard.state != standing::none && guard.group != wanted.to && guard.group != wanted.from;
    if (others && !wanted.takeover)
        return false;
    // Once a server is armed the run is over: the others are left to clients.
    const bool own_armed = guard.group == wanted.to && guard.state == standing::armed;
    return !own_armed || !has(rule::rerun_arms_nobody);
}

void protocol::move(state& now, int who, int at) const
{
    run& mine = now.runs[who];
    const change& wanted = nth(s_.runs, who);
    const server& there = now.servers[at];
    const marker guard = there.db[0].guard;
    const bool late = mine.now == stage::waiting && mine.servers[at].text.state == standing::none;
    mine.old_groups |= static_cast<mask>(1 << wanted.from);
    const bool others =
        guard.state != standing::none && guard.group != wanted.to && guard.group != wanted.from;
    if (others && has(rule::takeover_moves_all))
    {
        mine.old_groups |= static_cast<mask>(1 << guard.group);
        mine.foreign = 1;
    }
    if (guard.state != standing::none && guard.group == wanted.to && guard.replid == there.replid)
    {
        // Written by an earlier run, or by a client that found it stale.
        mine.servers[at] = {guard, 0, 0, 0};
        mine.foreign = 1;
    }
    else
        write_move(now, who, at);
    mine.servers[at].late = late ? 1 : 0;
    if (!late)
    {
        mine.now = stage::moving;
        for (moved& m : mine.servers)
            m.read = m.counts = m.late = 0;
    }
}

// The script.
void protocol::write_move(state& now, int who, int at) const
{
    const change& wanted = nth(s_.runs, who);
    server& there = now.servers[at];
    data& d = there.db[0];
    moved& mine = now.runs[who].servers[at];
    const bool is_old = contains(old_list(now.runs[who]), at);
    const bool was_armed = d.guard.state == standing::armed && d.guard.replid == there.replid;
    // Its counter is that of the moment of the first move. Nothing was granted since.
    const bool was_moved = d.guard.state == standing::retired ||
                           (d.guard.state == standing::quarantine && d.guard.why == reason::fresh);
    // Counters of a server that is new can only raise the floor.
    if (is_old && !was_armed && !was_moved && has(rule::move_deletes_floor))
        d.floor = missing;
    const bool stays = contains(s_.lists[wanted.to], at);
    if (stays || has(rule::left_out_retired))
        d.guard = {
            stays ? standing::quarantine : standing::retired, wanted.to, reason::fresh, ++there.next_nonce,
            there.replid};
    if (has(rule::move_clears_databases))
        there.db[1].guard = {};
    mine = {d.guard, 0, 0, 0};
}

bool protocol::can_wait(const state& now, int who) const
{
    const run& mine = now.runs[who];
    if (mine.now != stage::moving)
        return false;
    mask written = 0;
    for (int m = 0; m < s_.servers; m++)
        if (mine.servers[m].text.state != standing::none)
            written |= static_cast<mask>(1 << m);
    const mask list = s_.lists[nth(s_.runs, who).to];
    if ((written & list) != list)
        return false;
    for (int g = 1; g < max_groups; g++)
        if (contains(mine.old_groups, g) &&
            size(s_.lists[g] & written) < quorum(s_.lists[g]) - (has(rule::move_quorum) ? 0 : 1))
            return false;
    return true;
}

void protocol::begin_wait(state& now, int who) const
{
    run& mine = now.runs[who];
    mine.now = stage::waiting;
    const bool waits = has(rule::change_waits) && (has(rule::rerun_waits) || mine.foreign == 0);
    mine.wait = waits ? *std::max_element(s_.max_ttls.begin(), s_.max_ttls.end()) : number{0};
}

bool protocol::can_check(const state& now, int who, int at) const
{
    const run& mine = now.runs[who];
    const moved& here = mine.servers[at];
    if (mine.now != stage::waiting || mine.wait != 0 || here.read != 0 || here.text.state == standing::none ||
        !contains(old_list(mine), at) || (here.late != 0 && has(rule::late_moves_excluded)))
        return false;
    const server& there = now.servers[at];
    return !has(rule::check_after_wait) ||
           (is_same_text(there.db[0].guard, here.text) &&
            (there.replid == here.text.replid || !has(rule::left_out_retired)));
}

void protocol::check_moved(state& now, int who, int at) const
{
    run& mine = now.runs[who];
    const data& d = now.servers[at].db[0];
    mine.servers[at].read = 1;
    mine.servers[at].counts = d.floor != missing ? 1 : 0;
    if (d.floor != missing)
        mine.largest = std::max(mine.largest, counter_of(d));
}

bool protocol::can_decide(const state& now, int who) const
{
    const run& mine = now.runs[who];
    if (mine.now != stage::waiting || mine.wait != 0)
        return false;
    for (int g = 1; g < max_groups; g++)
    {
        if (!contains(mine.old_groups, g))
            continue;
        int checked = 0;
        int counters = 0;
        for (int m = 0; m < s_.servers; m++)
        {
            checked += contains(s_.lists[g], m) && mine.servers[m].read != 0;
            counters += contains(s_.lists[g], m) && mine.servers[m].counts != 0;
        }
        const int fewer = has(rule::move_quorum) ? 0 : 1;
        // The counters of an unfinished run's group may not exist. The clock stands for them.
        const bool counts = g == nth(s_.runs, who).from;
        if (checked < quorum(s_.lists[g]) - fewer || (counts && counters < blocking(s_.lists[g]) - fewer))
            return false;
    }
    const number to = nth(s_.runs, who).to;
    for (int m = 0; m < s_.servers && has(rule::rerun_arms_nobody); m++)
    {
        const marker& guard = now.servers[m].db[0].guard;
        if (contains(s_.lists[to], m) && guard.group == to && guard.state == standing::armed)
            return false;
    }
    return true;
}

void protocol::decide_floor(state& now, int who) const
{
    run& mine = now.runs[who];
    mine.now = stage::arming;
    if (mine.foreign != 0 && has(rule::rerun_by_clock))
        mine.largest = static_cast<number>(std::max(mine.largest, now.time) + 2 * s_.hour);
    for (moved& m : mine.servers)
        m.read = m.counts = m.late = 0;
}

} // namespace model
