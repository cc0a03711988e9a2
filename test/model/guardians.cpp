// SPDX-License-Identifier: BSL-1.0
// Quarantine and arming: what a client does in the background, and the scripts.

#include "protocol.hpp"

#include <algorithm>

namespace model
{

bool protocol::guardian_can(const state& now, const action& step) const
{
    const client& me = nth(s_.guardians, step.who);
    const quarantine_watch& mine = now.guardians[step.who].watches[step.at];
    if (!contains(me.list & me.reach, step.at))
        return false;
    switch (step.what)
    {
    case kind::quarantine:
        return can_quarantine(now, step.who, step.at);
    case kind::watch:
        return can_watch(now, step.who, step.at);
    case kind::read:
        return can_read(now, step.who, step.at, step.of);
    case kind::arm:
        return can_arm(now, step.who, step.at);
    case kind::look_unarmed:
        return s_.clocks && mine.unarmed != (counts_as_unarmed(now, me, step.at) ? 1 : 0);
    case kind::raise_floor:
        return can_arm_by_clock(now, step.who, step.at);
    case kind::raise_other:
        return can_raise_other(now, step.who, step.at, step.of);
    case kind::accuse:
        return can_accuse(now, step.who, step.at);
    default:
        return false;
    }
}

invariant protocol::guardian_does(state& now, const action& step) const
{
    const marker& guard = now.servers[step.at].db[0].guard;
    switch (step.what)
    {
    case kind::quarantine:
    {
        reason why = reason::stale;
        if (guard.state == standing::none ||
            (guard.state == standing::armed && guard.replid == now.servers[step.at].replid))
            why = reason::emptied;
        const bool kept = (guard.why == reason::emptied && has(rule::emptied_stays)) ||
                          (guard.why == reason::fresh && has(rule::fresh_stays));
        if (guard.state == standing::quarantine && kept)
            why = guard.why;
        put_into_quarantine(now, step.who, step.at, why);
        break;
    }
    case kind::accuse:
        put_into_quarantine(now, step.who, step.at, reason::clock);
        break;
    case kind::watch:
        begin_watch(now, step.who, step.at);
        break;
    case kind::read:
        read(now, step.who, step.at, step.of);
        break;
    case kind::look_unarmed:
        look_unarmed(now, step.who, step.at);
        break;
    case kind::raise_other:
        raise_other(now, step.who, step.at, step.of);
        break;
    case kind::raise_floor:
        raise_floor(now, step.who, step.at);
        if (has(rule::floor_settles) && !s_.is_armed_at_once)
            break;
        now.guardians[step.who].watches[step.at] = {};
        return arm(now, step.at, 0);
    case kind::arm:
    {
        guardian& self = now.guardians[step.who];
        const bool by_clock = self.watches[step.at].settle != 0;
        const number least = by_clock || !has(rule::counters_restored) ? number{0} : self.largest;
        for (quarantine_watch& w : self.watches)
            w.target = w.read = w.witness = 0;
        self.largest = 0;
        self.watches[step.at] = {};
        return arm(now, step.at, least);
    }
    default:
        break;
    }
    return invariant::none;
}

// ---- Quarantine ---------------------------------------------------------------------------------

bool protocol::is_on_record(const client& me, int at) const
{
    return contains(s_.lists[me.group], at) || !has(rule::record);
}

// The others that show a marker of the group, so also its record.
int protocol::others_of_group(const state& now, const client& me, int at) const
{
    int others = 0;
    for (int m = 0; m < s_.servers; m++)
    {
        const marker& guard = now.servers[m].db[0].guard;
        others += m != at && contains(me.list & me.reach, m) && guard.group == me.group &&
                  (guard.state == standing::quarantine || guard.state == standing::armed);
    }
    return others;
}

bool protocol::can_quarantine(const state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    const server& there = now.servers[at];
    const data& d = there.db[0];
    const bool lost_hash =
        d.guard.state == standing::armed && d.guard.group == me.group && d.floor == missing;
    if (d.guard.state == standing::none || lost_hash)
        return is_on_record(me, at) && others_of_group(now, me, at) >= blocking(me.list);
    const bool lost_counters = is_for_clock(d.guard, me.group) && d.guard.replid == there.replid &&
                               d.floor == missing && has(rule::clock_needs_floor);
    if (lost_counters)
        return true;
    const bool votes = d.guard.state == standing::quarantine || d.guard.state == standing::armed;
    return votes && d.guard.group == me.group && d.guard.replid != there.replid;
}

// The script. The client that runs it begins its wait with the answer.
void protocol::put_into_quarantine(state& now, int who, int at, reason why) const
{
    server& there = now.servers[at];
    const number group = nth(s_.guardians, who).group;
    there.db[0].guard = {standing::quarantine, group, why, ++there.next_nonce, there.replid};
    if (has(rule::other_databases))
        there.db[1].guard = {};
    there.covered = there.jumps;
    begin_watch(now, who, at);
}

bool protocol::can_watch(const state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    const server& there = now.servers[at];
    const marker& guard = there.db[0].guard;
    return guard.state == standing::quarantine && guard.group == me.group && guard.replid == there.replid &&
           is_on_record(me, at) && !waits_for_this(now, who, at);
}

void protocol::begin_watch(state& now, int who, int at) const
{
    guardian& self = now.guardians[who];
    // A new round of looks.
    for (quarantine_watch& w : self.watches)
        w.unarmed = 0;
    if (self.watches[at].target != 0)
        for (quarantine_watch& w : self.watches)
            w.target = w.read = w.witness = 0;
    self.watches[at] = {};
    self.watches[at].text = now.servers[at].db[0].guard;
    self.watches[at].wait = has(rule::wait) ? s_.max_ttls[nth(s_.guardians, who).group] : number{0};
}

bool protocol::waits_for_this(const state& now, int who, int at) const
{
    const marker& text = now.guardians[who].watches[at].text;
    return text.state == standing::quarantine && is_same_text(text, now.servers[at].db[0].guard);
}

// A master that was armed when its clock jumped. It has forgotten no counter.
bool protocol::is_for_clock(const marker& guard, number group) const
{
    return guard.state == standing::quarantine && guard.why == reason::clock && guard.group == group;
}

bool protocol::has_kept_counters(const server& there, number group) const
{
    const data& d = there.db[0];
    return is_good(there, group) || (is_for_clock(d.guard, group) &&
                                     (d.guard.replid == there.replid || !has(rule::clock_of_incarnation)) &&
                                     (d.floor != missing || !has(rule::clock_needs_floor)));
}

// ---- Arming -------------------------------------------------------------------------------------

bool protocol::can_read(const state& now, int who, int at, int of) const
{
    const client& me = nth(s_.guardians, who);
    const guardian& self = now.guardians[who];
    const quarantine_watch& mine = self.watches[at];
    const server& other = now.servers[of];
    if (of == at || !contains(me.list & me.reach, of) || !waits_for_this(now, who, at) ||
        is_settling(now, who) || (mine.wait != 0 && has(rule::read_after_wait)) ||
        (mine.target != 0 && self.watches[of].read != 0))
        return false;
    const marker& guard = other.db[0].guard;
    const bool unarmed = guard.group == me.group && guard.state == standing::quarantine;
    return has_kept_counters(other, me.group) || (unarmed && (mine.clocks != 0 || !has(rule::read_of_armed)));
}

void protocol::read(state& now, int who, int at, int of) const
{
    guardian& self = now.guardians[who];
    if (self.watches[at].target == 0)
    {
        for (quarantine_watch& w : self.watches)
            w.target = w.read = 0;
        self.watches[at].target = 1;
        self.largest = 0;
    }
    self.watches[of].read = 1;
    self.largest = std::max(self.largest, counter_of(now.servers[of].db[0]));
}

int protocol::counters_needed(const quarantine_watch& mine, const client& me) const
{
    if (!has(rule::counters_restored))
        return 0;
    if (mine.clocks != 0)
        return quorum(me.list) - 1;
    return blocking(me.list) - (has(rule::read_of_b) ? 0 : 1);
}

bool protocol::can_arm(const state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    const guardian& self = now.guardians[who];
    const quarantine_watch& mine = self.watches[at];
    const marker& guard = now.servers[at].db[0].guard;
    if (mine.text.state != standing::quarantine || mine.wait != 0)
        return false;
    const bool fits = has(rule::arm_compares_text)
                          ? is_same_text(guard, mine.text)
                          : guard.state == standing::quarantine && guard.group == me.group;
    if (!fits || guard.replid != now.servers[at].replid)
        return false;
    if (mine.settle != 0)
        return mine.settle == 1 && witnesses(now, who) >= (has(rule::floor_of_quorum) ? quorum(me.list) : 1);
    int armed = 0;
    for (int m = 0; m < s_.servers; m++)
        armed += self.watches[m].read;
    const bool no_counters = !has(rule::counters_restored);
    armed += has_kept_counters(now.servers[at], me.group);
    // What was read of masters that weren't armed is for arming by the clock.
    return (no_counters || mine.target != 0) && mine.clocks == 0 && armed >= counters_needed(mine, me);
}

invariant protocol::arm(state& now, int at, number least_floor) const
{
    server& there = now.servers[at];
    data& d = there.db[0];
    d.guard.state = standing::armed;
    d.floor = d.floor == missing ? least_floor : std::max(d.floor, least_floor);
    there.settled = there.covered;
    if (wanted_ == checks::promises)
        return invariant::none;
    if (there.since_loss != 0)
        return invariant::quarantine;
    return contains(s_.lists[d.guard.group], at) ? invariant::none : invariant::stranger;
}

// ---- The policy `clocks` ------------------------------------------------------------------------

bool protocol::counts_as_unarmed(const state& now, const client& me, int at) const
{
    const server& there = now.servers[at];
    const marker& guard = there.db[0].guard;
    if (guard.group != me.group)
        return false;
    if (guard.state == standing::armed)
        return guard.replid != there.replid && there.db[0].floor != missing;
    return guard.state == standing::quarantine &&
           (guard.why == reason::stale ||
            (guard.why == reason::emptied && !has(rule::clocks_exclude_emptied)) ||
            (guard.why == reason::fresh && !has(rule::fresh_excluded)));
}

void protocol::look_unarmed(state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    guardian& self = now.guardians[who];
    self.watches[at].unarmed = counts_as_unarmed(now, me, at) ? 1 : 0;
    int unarmed = has(rule::clocks_need_answers) ? 0 : size(me.list & static_cast<mask>(~me.reach));
    for (const quarantine_watch& w : self.watches)
        unarmed += w.unarmed;
    if (unarmed < quorum(me.list))
        return;
    for (int m = 0; m < s_.servers; m++)
        if (self.watches[m].unarmed != 0 && waits_for_this(now, who, m))
            self.watches[m].clocks = 1;
}

bool protocol::sees_other_group(const state& now, const client& me) const
{
    for (int m = 0; m < s_.servers; m++)
    {
        const marker& guard = now.servers[m].db[0].guard;
        if (contains(me.list & me.reach, m) && guard.state != standing::none && guard.group != me.group)
            return true;
    }
    return false;
}

bool protocol::can_arm_by_clock(const state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    const guardian& self = now.guardians[who];
    const quarantine_watch& mine = self.watches[at];
    if (mine.clocks == 0 || mine.wait != 0 || is_settling(now, who) || !waits_for_this(now, who, at))
        return false;
    if (mine.text.replid != now.servers[at].replid)
        return false;
    if (has(rule::other_group_seen) && sees_other_group(now, me))
        return false;
    int counters = has(rule::clocks_need_answers) ? 0 : size(me.list & static_cast<mask>(~me.reach));
    for (int m = 0; m < s_.servers && mine.target != 0; m++)
        counters += self.watches[m].read;
    return counters >= counters_needed(mine, me);
}

void protocol::raise_floor(state& now, int who, int at) const
{
    guardian& self = now.guardians[who];
    data& d = now.servers[at].db[0];
    const number largest = std::max(self.watches[at].target != 0 ? self.largest : number{0}, counter_of(d));
    d.floor = largest;
    if (has(rule::floor_by_clock))
        d.floor = static_cast<number>(
            s_.is_armed_at_once
                ? std::max<int>(largest, now.time + (has(rule::floor_leads) ? 2 * s_.hour : 0))
                : std::max(largest, now.time) + 2 * s_.hour);
    for (quarantine_watch& w : self.watches)
        w.target = w.read = w.witness = w.settle = 0;
    self.largest = d.floor;
    self.watches[at].target = 1;
    self.watches[at].witness = now.servers[at].replid;
    self.watches[at].settle = 2;
}

// Whether a floor that was raised waits to be durable.
bool protocol::is_settling(const state& now, int who) const
{
    for (int m = 0; m < s_.servers; m++)
        if (now.guardians[who].watches[m].settle != 0 && waits_for_this(now, who, m))
            return true;
    return false;
}

bool protocol::can_raise_other(const state& now, int who, int at, int of) const
{
    const client& me = nth(s_.guardians, who);
    const guardian& self = now.guardians[who];
    const server& other = now.servers[of];
    const standing state = other.db[0].guard.state;
    return of != at && contains(me.list & me.reach, of) && self.watches[at].settle != 0 &&
           other.db[0].guard.group == me.group &&
           (state == standing::quarantine || state == standing::armed) &&
           self.watches[of].witness != other.replid;
}

void protocol::raise_other(state& now, int who, int at, int of) const
{
    guardian& self = now.guardians[who];
    data& d = now.servers[of].db[0];
    d.floor = d.floor == missing ? self.largest : std::max(d.floor, self.largest);
    self.watches[of].witness = now.servers[of].replid;
    self.watches[at].settle = 2;
}

// The masters that have had the floor since it settled, so that no power cut takes it from them.
int protocol::witnesses(const state& now, int who) const
{
    const client& me = nth(s_.guardians, who);
    int durable = has(rule::clocks_need_answers) ? 0 : size(me.list & static_cast<mask>(~me.reach));
    for (int m = 0; m < s_.servers; m++)
    {
        const server& there = now.servers[m];
        durable += now.guardians[who].watches[m].witness == there.replid &&
                   counter_of(there.db[0]) >= now.guardians[who].largest;
    }
    return durable;
}

bool protocol::can_accuse(const state& now, int who, int at) const
{
    const client& me = nth(s_.guardians, who);
    const server& there = now.servers[at];
    if (there.jumps == there.settled || !is_good(there, me.group))
        return false;
    int trusted = 0;
    for (int m = 0; m < s_.servers; m++)
    {
        if (m == at || !contains(me.list & me.reach, m))
            continue;
        const server& other = now.servers[m];
        if (other.db[0].guard.state == standing::quarantine && other.db[0].guard.why == reason::clock)
            return false;
        trusted += other.jumps == other.settled;
    }
    return trusted >= quorum(me.list);
}

} // namespace model
