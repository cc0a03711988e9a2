// SPDX-License-Identifier: BSL-1.0
// Acquire, raise, extend, re-join and release: the client's part and the scripts.

#include "protocol.hpp"

#include <algorithm>

namespace model
{

bool protocol::attempt_can(const state& now, const action& step) const
{
    const attempt& mine = now.attempts[step.who];
    const vote& here = mine.votes[step.at];
    const client& me = nth(s_.attempts, step.who);
    switch (step.what)
    {
    case kind::look:
        return s_.separate_looks && mine.now == phase::idle && contains(me.list & me.reach, step.at) &&
               is_good(now.servers[step.at], me.group) && here.known != now.servers[step.at].db[0].guard;
    case kind::begin:
        return can_begin(now, step.who);
    case kind::acquire:
        return here.acquire == request::sent;
    case kind::repeat_acquire:
        return now.left.repeats != 0 && here.acquire >= request::answered;
    case kind::receive:
        return here.acquire == request::answered && mine.now == phase::acquiring;
    case kind::raise:
        return here.raise == request::sent;
    case kind::repeat_raise:
        return now.left.repeats != 0 && here.raise >= request::answered;
    case kind::receive_raise:
        return here.raise == request::answered && mine.now == phase::acquiring;
    case kind::end:
        return mine.now == phase::acquiring || mine.now == phase::held;
    case kind::release:
        return mine.now == phase::ended && now.servers[step.at].db[0].owner == step.who + 1;
    case kind::extend_begin:
        return can_extend(now, step.who);
    case kind::extend:
        return here.extend == extension::sent;
    case kind::rejoin:
        return here.extend == extension::rejoining;
    default:
        return false;
    }
}

invariant protocol::attempt_does(state& now, const action& step) const
{
    attempt& mine = now.attempts[step.who];
    vote& here = mine.votes[step.at];
    switch (step.what)
    {
    case kind::look:
        look(now, step.who, step.at);
        break;
    case kind::begin:
        begin(now, step.who);
        break;
    case kind::acquire:
        return answer_acquire(now, step.who, step.at);
    case kind::repeat_acquire:
        now.left.repeats--;
        acquire_at(now, step.who, step.at);
        break;
    case kind::receive:
        here.acquire = request::received;
        return decide(now, step.who);
    case kind::raise:
        here.raised = raise_at(now, step.who, step.at);
        here.raise = s_.late_answers ? request::answered : request::received;
        if (mine.now == phase::acquiring && here.raise == request::received)
            return decide(now, step.who);
        if (mine.now != phase::acquiring)
            forget_answers(now, step.who);
        break;
    case kind::repeat_raise:
        now.left.repeats--;
        raise_at(now, step.who, step.at);
        break;
    case kind::receive_raise:
        here.raise = request::received;
        return decide(now, step.who);
    case kind::end:
        end(now, step.who);
        break;
    case kind::release:
        release_at(now, step.who, step.at);
        break;
    case kind::extend_begin:
        begin_extension(now, step.who);
        break;
    case kind::extend:
        return extend_at(now, step.who, step.at);
    case kind::rejoin:
        rejoin_at(now, step.who, step.at);
        break;
    default:
        break;
    }
    return invariant::none;
}

// ---- Acquire ------------------------------------------------------------------------------------

void protocol::look(state& now, int who, int at) const
{
    const server& there = now.servers[at];
    vote& here = now.attempts[who].votes[at];
    here.known = there.db[0].guard;
    here.known_jumps = nth(s_.attempts, who).newcomer ? there.jumps : there.settled;
}

bool protocol::can_begin(const state& now, int who) const
{
    const attempt& mine = now.attempts[who];
    const client& me = nth(s_.attempts, who);
    // Attempts of equal clients begin in their order: the others would only be named differently.
    if (mine.now != phase::idle ||
        (who > 0 && me == nth(s_.attempts, who - 1) && now.attempts[who - 1].now == phase::idle))
        return false;
    int armed = 0;
    for (int at = 0; at < s_.servers; at++)
        armed += contains(me.list & me.reach, at) &&
                 (s_.separate_looks ? mine.votes[at].known.state == standing::armed
                                    : is_good(now.servers[at], me.group));
    return armed >= quorum(me.list);
}

void protocol::begin(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    const client& me = nth(s_.attempts, who);
    mine.now = phase::acquiring;
    mine.validity = me.max_ttl;
    mine.begun_after = now.largest;
    for (int at = 0; at < s_.servers; at++)
    {
        if (!contains(me.list & me.reach, at))
            continue;
        if (!s_.separate_looks && is_good(now.servers[at], me.group))
            look(now, who, at);
        if (mine.votes[at].known.state == standing::armed)
            mine.votes[at].acquire = request::sent;
    }
}

bool protocol::accepts_acquire(const server& there, const vote& mine, int group) const
{
    const data& d = there.db[0];
    if (has(rule::group_in_acquire) && mine.known.group != group)
        return false;
    if (has(rule::acquire_compares_text) && !is_same_text(d.guard, mine.known))
        return false;
    if (has(rule::acquire_compares_replid) && mine.known.replid != there.replid)
        return false;
    if (has(rule::clock_compared) && mine.known_jumps < there.jumps)
        return false;
    return d.floor != missing || !has(rule::floor_required);
}

// The script. Returns the counter, or 0 if nothing was granted.
number protocol::acquire_at(state& now, int who, int at) const
{
    server& there = now.servers[at];
    data& d = there.db[0];
    const vote& mine = now.attempts[who].votes[at];
    const client& me = nth(s_.attempts, who);
    if (!accepts_acquire(there, mine, me.group) || (d.owner != 0 && d.owner != who + 1))
        return 0;
    number c = counter_of(d);
    if (d.owner == who + 1)
        return c;
    const bool ignores_hint = me.hint > now.time + s_.hour && me.hint > c + far_ahead;
    if (at != 0 || has(rule::queue_grant_counts))
        c = std::max<number>(static_cast<number>(c + 1), ignores_hint ? number{0} : me.hint);
    d.slot = c;
    d.owner = static_cast<number>(who + 1);
    d.ttl = me.max_ttl;
    // Keys have vanished, and this client could not know: the marker is still the one that it saw.
    if (there.jumps > there.settled && mine.known_jumps == there.jumps && d.guard == mine.known)
        now.exclusive = false;
    return c;
}

invariant protocol::answer_acquire(state& now, int who, int at) const
{
    attempt& mine = now.attempts[who];
    vote& here = mine.votes[at];
    here.granted = acquire_at(now, who, at);
    here.acquire = s_.late_answers && mine.now == phase::acquiring ? request::answered : request::received;
    if (here.granted != 0 && wanted_ == checks::all && now.servers[at].since_loss != 0)
        return invariant::quarantine;
    if (mine.now == phase::acquiring && here.acquire == request::received)
        return decide(now, who);
    if (mine.now == phase::held || mine.now == phase::ended)
        forget_answers(now, who);
    return invariant::none;
}

// The script. Returns whether the counter is T, or belongs to this attempt up to T.
bool protocol::raise_at(state& now, int who, int at) const
{
    server& there = now.servers[at];
    data& d = there.db[0];
    const attempt& mine = now.attempts[who];
    const marker& known = mine.votes[at].known;
    if (has(rule::raise_compares_marker))
    {
        if (!is_same_text(d.guard, known) ||
            (has(rule::raise_compares_replid) && known.replid != there.replid))
            return false;
    }
    if (has(rule::raise_compares_owner) && d.owner != who + 1)
        return false;
    if (counter_of(d) < mine.token)
        d.slot = mine.token;
    return true;
}

int protocol::exact_counters(const attempt& mine) const
{
    int exact = 0;
    for (const vote& v : mine.votes)
    {
        const bool granted = v.acquire == request::received && v.granted != 0;
        const bool fits = has(rule::exactly_t) ? v.granted == mine.token : v.granted >= mine.token;
        exact += (granted && fits) || (v.raise == request::received && v.raised != 0);
    }
    return exact;
}

// After each answer: chooses T, asks for raises, issues.
invariant protocol::decide(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    const int needed = quorum(nth(s_.attempts, who).list);
    int granted = 0;
    number largest = 0;
    for (const vote& v : mine.votes)
        if (v.acquire == request::received && v.granted != 0)
        {
            granted++;
            largest = std::max(largest, v.granted);
        }
    if (granted < needed)
        return invariant::none;
    if (mine.token == 0)
        mine.token = largest;
    if (!has(rule::second_phase))
        return issue(now, who);
    if (exact_counters(mine) >= needed - (has(rule::quorum_of_exact) ? 0 : 1))
        return issue(now, who);
    for (vote& v : mine.votes)
        if (v.acquire == request::received && v.granted != 0 && v.granted < mine.token &&
            v.raise == request::none)
            v.raise = request::sent;
    return invariant::none;
}

invariant protocol::issue(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    mine.now = phase::held;
    mine.issued = 1;
    for (int other = 0; other < attempts(); other++)
        if (other != who && now.attempts[other].issued != 0 && now.attempts[other].token == mine.token)
            return invariant::unique;
    if (mine.token <= mine.begun_after)
        return invariant::order;
    if (now.exclusive && mine.token < now.largest)
        return invariant::rising;
    now.largest = std::max(now.largest, mine.token);
    forget_answers(now, who);
    return check_exclusion(now);
}

// Forgets what can't have an effect after the acquire, so that fewer states differ: all but requests on their way.
void protocol::forget_answers(state& now, int who) const
{
    for (vote& v : now.attempts[who].votes)
    {
        v.granted = v.raised = 0;
        v.raise = v.raise == request::sent ? v.raise : request::none;
        if (now.left.repeats != 0)
            continue;
        v.acquire = v.acquire == request::sent ? v.acquire : request::none;
        if (v.acquire == request::none && v.raise == request::none)
        {
            v.known = {};
            v.known_jumps = 0;
        }
    }
}

invariant protocol::check_exclusion(const state& now) const
{
    int valid = 0;
    for (const attempt& a : now.attempts)
        valid += a.now == phase::held && a.validity != 0;
    return valid > 1 && now.exclusive ? invariant::exclusion : invariant::none;
}

// ---- Release ------------------------------------------------------------------------------------

void protocol::end(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    mine.now = phase::ended;
    mine.validity = mine.extending = mine.extensions = mine.begun_after = 0;
    forget_answers(now, who);
    bool raises = false;
    for (vote& v : mine.votes)
    {
        raises |= v.raise == request::sent;
        v.extend = v.extend == extension::rejoining ? v.extend : extension::none;
    }
    if (mine.issued == 0 && !raises)
        mine.token = 0;
}

void protocol::release_at(state& now, int who, int at) const
{
    data& d = now.servers[at].db[0];
    if (d.owner != who + 1)
        return;
    d.owner = 0;
    d.ttl = 0;
    if (!has(rule::counter_kept))
        d.slot = 0;
}

// ---- Extend and re-join -------------------------------------------------------------------------

bool protocol::can_extend(const state& now, int who) const
{
    const attempt& mine = now.attempts[who];
    return mine.now == phase::held && mine.extensions < s_.extensions &&
           (mine.validity != 0 || !has(rule::expired_not_extended));
}

void protocol::begin_extension(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    const client& me = nth(s_.attempts, who);
    mine.extensions++;
    mine.extending = me.max_ttl;
    for (int at = 0; at < s_.servers; at++)
        mine.votes[at].extend = contains(me.list & me.reach, at) ? extension::sent : extension::none;
}

// The group of the lease. Without the rule, that of the client's list today: the newest one.
number protocol::group_of_extension(int who) const
{
    return has(rule::lease_keeps_group) || s_.runs.empty() ? nth(s_.attempts, who).group : s_.runs.front().to;
}

extension protocol::extension_answer(state& now, int who, int at) const
{
    data& d = now.servers[at].db[0];
    const number ttl = nth(s_.attempts, who).max_ttl;
    if (d.owner == 0 && !has(rule::extend_compares_owner))
        return extension::granted;
    if (d.owner != who + 1)
        return extension::not_ours;
    const bool has_group = d.guard.state != standing::none && d.guard.group == group_of_extension(who);
    if (has(rule::group_in_extend) && !has_group)
        return extension::failed;
    d.ttl = std::max(d.ttl, ttl);
    return extension::granted;
}

invariant protocol::extend_at(state& now, int who, int at) const
{
    vote& here = now.attempts[who].votes[at];
    here.extend = extension_answer(now, who, at);
    return count_extension(now, who);
}

invariant protocol::count_extension(state& now, int who) const
{
    attempt& mine = now.attempts[who];
    if (mine.now != phase::held)
    {
        for (vote& v : mine.votes)
            v.extend = v.extend == extension::rejoining ? v.extend : extension::none;
        return invariant::none;
    }
    const auto granted = std::count_if(
        mine.votes.begin(), mine.votes.end(), [](const vote& v) { return v.extend == extension::granted; });
    const bool confirmed = granted >= quorum(nth(s_.attempts, who).list);
    if (!confirmed)
        return invariant::none;
    mine.validity = std::max(mine.validity, mine.extending);
    for (vote& v : mine.votes)
        if (v.extend == extension::not_ours)
            v.extend = extension::rejoining;
    return check_exclusion(now);
}

void protocol::rejoin_at(state& now, int who, int at) const
{
    data& d = now.servers[at].db[0];
    vote& here = now.attempts[who].votes[at];
    here.extend = extension::none;
    if (d.owner != 0 && has(rule::rejoin_needs_absence))
        return;
    d.owner = static_cast<number>(who + 1);
    d.ttl = nth(s_.attempts, who).max_ttl;
}

} // namespace model
