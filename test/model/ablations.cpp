// SPDX-License-Identifier: BSL-1.0
// The ablations: for each rule of the protocol, a schedule that breaks a promise without it.

#include "catalogue.hpp"
#include "steps.hpp"

namespace model
{

namespace
{

using namespace steps;

constexpr mask three = 0b00111;

// Three masters, and attempts of equal clients, the second of which has a hint.
scenario three_masters()
{
    scenario s;
    const client c{.list = three};
    s.attempts = {c, c, c};
    s.attempts[1].hint = 5;
    s.guardians = {c, c};
    s.faults = 20;
    s.fault_kinds = fault::all;
    s.saves = 10;
    s.vanishing = 2;
    s.jumps = 1;
    s.others = 5;
    s.extensions = 3;
    return s;
}

scenario without_hints()
{
    scenario s = three_masters();
    s.attempts[1].hint = 0;
    return s;
}

// The second client knows no clock of a master: only the marker shows it that keys have vanished.
scenario with_newcomer()
{
    scenario s = three_masters();
    s.attempts[1].newcomer = true;
    return s;
}

scenario late_answers()
{
    scenario s = without_hints();
    s.late_answers = true;
    return s;
}

// The second client has a typo in its list: server 3 isn't on the group's record.
scenario with_stranger()
{
    scenario s = three_masters();
    s.servers = 4;
    s.attempts[1].list = s.guardians[1].list = 0b1011;
    return s;
}

scenario by_clocks()
{
    scenario s = without_hints();
    s.clocks = true;
    return s;
}

// Attempt 2 has a hint that is an hour ahead.
scenario by_clocks_at_once()
{
    scenario s = armed_at_once(by_clocks());
    s.attempts[2].hint = s.hour;
    return s;
}

// Group 1 is changed to group 2. Attempt 0 knows the old list, 1 and 2 the new one; each guardian one of them.
scenario with_change(mask from, mask to)
{
    scenario s = three_masters();
    s.servers = 5;
    s.lists = {{0, from, to, 0}};
    s.attempts[0].list = s.guardians[0].list = from;
    s.attempts[1].list = s.attempts[2].list = s.guardians[1].list = to;
    s.attempts[1].group = s.attempts[2].group = s.guardians[1].group = 2;
    s.runs = {{1, 2}, {1, 2}};
    return s;
}

// Two changes of group 1: run 0 to group 2, run 1 to group 3. Attempt 2 knows the list of group 3.
scenario with_two_changes(mask second, mask third)
{
    scenario s = with_change(three, second);
    s.lists[3] = third;
    s.attempts[2].list = third;
    s.attempts[2].group = 3;
    s.attempts[2].hint = s.hour;
    s.runs[1] = {1, 3, true};
    return s;
}

scenario change_by_clocks(mask from, mask to)
{
    scenario s = with_change(from, to);
    s.clocks = true;
    s.attempts[1].hint = 0;
    return s;
}

// A guardian ends the quarantine of a server, counters included.
schedule arm_after_wait(int who, int at, int one, int other)
{
    return {tick, tick, read(who, at, one), read(who, at, other), arm(who, at)};
}

// The servers find each other unarmed, and are armed by the clock after the wait. The floor of each is first raised on
// both.
schedule arm_both(int who, int one, int other)
{
    return {
        look_unarmed(who, one),  look_unarmed(who, other),     tick, tick,           read(who, one, other),
        raise_floor(who, one),   raise_other(who, one, other), tick, arm(who, one),  read(who, other, one),
        raise_floor(who, other), raise_other(who, other, one), tick, arm(who, other)};
}

schedule arm_by_clock(int who, int one, int other)
{
    return schedule{quarantine(who, one), quarantine(who, other)} + arm_both(who, one, other);
}

// Two restarts of servers with their data. Each adds two hours or more, so counters are ahead of the time.
schedule climb(int who, int one, int other)
{
    const schedule once = schedule{restart(one), restart(other)} + arm_by_clock(who, one, other);
    return once + once;
}

// A run moves servers, waits, and checks two old masters.
schedule
change_group(int who, const std::vector<int>& moved, int one, int other, const std::vector<int>& armed)
{
    schedule steps;
    for (const int at : moved)
        steps.push_back(move(who, at));
    steps = steps + schedule{move_wait(who),  tick, tick, move_check(who, one), move_check(who, other),
                             move_decide(who)};
    for (const int at : armed)
        steps.push_back(move_arm(who, at));
    return steps;
}

schedule acquire_at(int who, int one, int other)
{
    return {begin(who), acquire(who, one), acquire(who, other)};
}

// ---- Tokens -------------------------------------------------------------------------------------

// The first attempt is granted 2 and 1: T is 2, and the raise is on its way.
const schedule unequal{other_acquire(0), begin(0), acquire(0, 0), acquire(0, 1)};

std::vector<ablation> tokens()
{
    const schedule one_has_it = unequal + schedule{end(0), release(0, 1)} + acquire_at(1, 1, 2);
    const schedule vanished =
        schedule{other_acquire(2)} + unequal + schedule{save(1), vanish(1)} + acquire_at(1, 1, 2);
    const schedule second = schedule{end(0), release(0, 0), release(0, 1)} + acquire_at(1, 0, 1);
    return {
        {"one phase", rule::second_phase, without_hints(), one_has_it, invariant::unique},
        {"one acknowledgement too few", rule::quorum_of_exact, without_hints(), one_has_it,
         invariant::unique},
        {"T or more", rule::exactly_t, without_hints(),
         vanished + schedule{end(1), release(1, 2), acquire(0, 2)}, invariant::unique},
        {"raise without owner", rule::raise_compares_owner, without_hints(), vanished + schedule{raise(0, 1)},
         invariant::unique},
        {"raise without marker", rule::raise_compares_marker, without_hints(),
         vanished + schedule{restore(1), raise(0, 1)}, invariant::unique},
        {"raise without replid", rule::raise_compares_replid, without_hints(),
         vanished + schedule{restore(1), raise(0, 1)}, invariant::unique},
        {"validity before the raise",
         rule::validity_last,
         late_answers(),
         {other_acquire(0), begin(0), acquire(0, 0), receive(0, 0), acquire(0, 1), receive(0, 1), raise(0, 1),
          tick, tick, begin(1), acquire(1, 0), receive(1, 0), acquire(1, 1), receive(1, 1),
          receive_raise(0, 1)},
         invariant::rising},
        {"queue grant without a counter", rule::queue_grant_counts, without_hints(),
         schedule{other_acquire(0)} + acquire_at(0, 0, 1) + schedule{end(0), release(0, 0)} +
             acquire_at(1, 0, 2),
         invariant::unique},
        {"counter deleted by the release", rule::counter_kept, without_hints(), acquire_at(0, 0, 1) + second,
         invariant::unique},
        {"hash of counters not required", rule::floor_required, without_hints(),
         acquire_at(0, 0, 1) + schedule{end(0), release(0, 0), drop_hash(0)} + acquire_at(1, 0, 2),
         invariant::unique},
    };
}

// ---- Incarnations -------------------------------------------------------------------------------

std::vector<ablation> incarnations()
{
    const schedule forgotten{flush(0), quarantine(0, 0)};
    const schedule held = acquire_at(0, 0, 1);
    const schedule issued = held + schedule{end(0)};
    const schedule other = acquire_at(1, 0, 2);
    const schedule for_clock{jump(1), accuse(0, 1)};
    // Two wait for one quarantine; guardian 1 ends it, and guardian 0 is late.
    const schedule twice = forgotten + schedule{watch(1, 0),   tick,          tick,          read(0, 0, 1),
                                                read(0, 0, 2), read(1, 0, 1), read(1, 0, 2), arm(1, 0)};
    return {
        {"text not compared", rule::acquire_compares_text, with_newcomer(),
         held + schedule{jump(0), begin(1), accuse(0, 0), acquire(1, 0), acquire(1, 2)},
         invariant::exclusion},
        {"replid not compared", rule::acquire_compares_replid, three_masters(),
         schedule{save(0)} + held + schedule{begin(1), restore(0), acquire(1, 0), acquire(1, 2)},
         invariant::exclusion},
        {"no wait", rule::wait, three_masters(),
         held + forgotten + schedule{read(0, 0, 1), read(0, 0, 2), arm(0, 0)} + other, invariant::exclusion},
        {"no nonce", rule::nonce, three_masters(),
         twice + held + schedule{flush(0), quarantine(1, 0), arm(0, 0)} + other, invariant::exclusion},
        {"arming compares no text", rule::arm_compares_text, three_masters(),
         twice + held + schedule{flush(0), quarantine(1, 0), arm(0, 0)} + other, invariant::exclusion},
        {"counters not restored", rule::counters_restored, without_hints(),
         issued + forgotten + schedule{tick, tick, arm(0, 0)} + other, invariant::unique},
        {"counters of b - 1", rule::read_of_b, without_hints(),
         issued + forgotten + schedule{tick, tick, read(0, 0, 2), arm(0, 0)} + other, invariant::unique},
        {"counters read before the wait's end", rule::read_after_wait, without_hints(),
         schedule{begin(0), acquire(0, 0)} + forgotten +
             schedule{read(0, 0, 1), read(0, 0, 2), acquire(0, 1), tick, tick, arm(0, 0)} + other,
         invariant::unique},
        {"counters of unarmed masters", rule::read_of_armed, without_hints(),
         schedule{save(1)} + issued + schedule{restore(1), quarantine(0, 1)} + forgotten +
             arm_after_wait(0, 0, 1, 2) + other,
         invariant::unique},
        {"markers of other databases left", rule::other_databases, three_masters(),
         schedule{swap(0), quarantine(0, 0)} + arm_after_wait(0, 0, 1, 2) + held + schedule{swap(0)} + other,
         invariant::exclusion},
        {"server not on the record", rule::record, with_stranger(),
         schedule{quarantine(1, 3)} + arm_after_wait(1, 3, 0, 1) + acquire_at(0, 1, 2) + acquire_at(1, 0, 3),
         invariant::exclusion},
        {"clock not compared", rule::clock_compared, three_masters(), held + schedule{jump(0)} + other,
         invariant::exclusion},
        {"older quarantine for a clock has kept its counters", rule::clock_of_incarnation, without_hints(),
         for_clock + schedule{save(1)} + arm_after_wait(0, 1, 0, 2) + issued + schedule{restore(1)} +
             forgotten + arm_after_wait(0, 0, 1, 2) + other,
         invariant::unique},
        {"quarantine for a clock without the hash of counters", rule::clock_needs_floor, without_hints(),
         issued + for_clock + schedule{drop_hash(1)} + forgotten + arm_after_wait(0, 0, 1, 2) + other,
         invariant::unique},
    };
}

// ---- Leases -------------------------------------------------------------------------------------

std::vector<ablation> leases()
{
    // The lease is valid for two ticks; its keys on 0 and 1 expire after three and two, and a re-join is on its way.
    const schedule rejoining =
        acquire_at(0, 0, 1) +
        schedule{extend_begin(0), extend(0, 1), extend(0, 2), tick, extend(0, 0), tick} + acquire_at(1, 1, 2);
    return {
        {"expired lease extended", rule::expired_not_extended, three_masters(),
         rejoining +
             schedule{flush(2), quarantine(0, 2), rejoin(0, 2), extend_begin(0), extend(0, 0), extend(0, 2)},
         invariant::exclusion},
        {"extension of a missing key", rule::extend_compares_owner, three_masters(),
         acquire_at(0, 0, 1) + schedule{tick, extend_begin(0), extend(0, 0), extend(0, 2), tick} +
             acquire_at(1, 1, 2),
         invariant::exclusion},
        {"re-join takes a key", rule::rejoin_needs_absence, three_masters(),
         rejoining +
             schedule{
                 rejoin(0, 2), release(0, 0), release(0, 2), begin(2), acquire(2, 0), acquire(2, 2),
                 raise(2, 0)},
         invariant::exclusion},
    };
}

// ---- The policy `clocks` ------------------------------------------------------------------------

std::vector<ablation> clocks()
{
    scenario unreachable = by_clocks();
    unreachable.guardians[1].reach = 0b011;
    const auto alone = [](int at)
    {
        return schedule{restore(at), quarantine(1, at), look_unarmed(1, at), tick, tick, raise_floor(1, at),
                        tick,        arm(1, at)};
    };
    const schedule climbed = schedule{save(0), save(1)} + climb(0, 0, 1) + schedule{begin(0), acquire(0, 0)} +
                             schedule{acquire(0, 1), raise(0, 0), raise(0, 1), end(0)};
    const schedule emptied{flush(0), quarantine(0, 0), flush(1), quarantine(0, 1)};
    const schedule rest_of_arming = arm_both(0, 0, 1);
    const schedule second{begin(1), acquire(1, 0), acquire(1, 1), raise(1, 0), raise(1, 1)};
    const schedule cut{power_cut(0), power_cut(1), power_cut(2)};
    const schedule seen_unarmed{
        quarantine(0, 0),
        quarantine(0, 1),
        quarantine(0, 2),
        look_unarmed(0, 0),
        look_unarmed(0, 1),
        look_unarmed(0, 2),
        tick,
        tick};
    const schedule at_once =
        seen_unarmed + schedule{read(0, 0, 1), raise_floor(0, 0), read(0, 1, 0), raise_floor(0, 1)};
    return {
        {"clocks with unreachable masters", rule::clocks_need_answers, unreachable,
         climbed + alone(0) + alone(1) + second, invariant::order},
        {"clocks with emptied masters", rule::clocks_exclude_emptied, by_clocks(),
         climbed + emptied + rest_of_arming + second, invariant::order},
        {"the reason `emptied` is forgotten", rule::emptied_stays, by_clocks(),
         climbed + emptied + schedule{restart(0), restart(1), quarantine(0, 0), quarantine(0, 1)} +
             rest_of_arming + second,
         invariant::order},
        {"floor without the clock", rule::floor_by_clock, by_clocks(),
         acquire_at(0, 0, 1) + schedule{end(0)} + cut + arm_by_clock(0, 0, 1) + second, invariant::unique},
        // The first design arms as it raises the floor. The second master reads the floor of the first, so its
        // own is four hours ahead. A power cut within a second of it takes both from the files, and the token.
        {"floor not durable before arming", rule::floor_settles, by_clocks(),
         cut + seen_unarmed +
             schedule{
                 read(0, 0, 1), raise_floor(0, 0), read(0, 1, 0), raise_floor(0, 1), begin(0),
                 acquire(0, 0)} +
             schedule{acquire(0, 1), raise(0, 0), end(0)} + cut + seen_unarmed +
             schedule{read(0, 0, 2), raise_floor(0, 0), read(0, 1, 2), raise_floor(0, 1)} + second,
         invariant::order},
        {"armed at once, without the clock", rule::floor_by_clock, by_clocks_at_once(),
         acquire_at(0, 0, 1) + schedule{end(0)} + cut + at_once + second, invariant::unique},
        {"armed at once, by the clock alone", rule::floor_leads, by_clocks_at_once(),
         acquire_at(2, 0, 1) + schedule{end(2)} + cut + at_once + acquire_at(0, 0, 1), invariant::order},
        // Server 1 has a floor that server 0 doesn't have. The token is raised on server 2, which loses it.
        {"floor of one master", rule::floor_of_quorum, by_clocks(),
         schedule{
             power_cut(0), power_cut(1), quarantine(0, 0), quarantine(1, 1), quarantine(0, 1), watch(1, 0)} +
             schedule{
                 look_unarmed(0, 0), look_unarmed(0, 1), look_unarmed(1, 0), look_unarmed(1, 1), tick, tick} +
             schedule{watch(0, 1), read(0, 0, 1), raise_floor(0, 0), read(1, 1, 0), raise_floor(1, 1), tick} +
             schedule{arm(1, 1), begin(0), acquire(0, 1), acquire(0, 2), raise(0, 2), end(0), power_cut(2)} +
             schedule{quarantine(1, 2), look_unarmed(1, 0), look_unarmed(1, 2), tick, tick, arm(0, 0)} +
             schedule{
                 read(1, 2, 0), raise_floor(1, 2), tick, arm(1, 2), begin(1), acquire(1, 0), acquire(1, 2)} +
             schedule{raise(1, 0), raise(1, 2)},
         invariant::unique},
    };
}

// ---- The change of the group --------------------------------------------------------------------

std::vector<ablation> changes()
{
    const schedule held = acquire_at(0, 0, 1);
    const schedule extended{extend_begin(0), extend(0, 0), extend(0, 1)};
    const schedule moved{move(0, 0), move(0, 1), move(0, 2), move(0, 3), move(0, 4), move_wait(0)};
    const schedule armed{move_check(0, 0), move_check(0, 1), move_decide(0), move_arm(0, 3), move_arm(0, 4)};
    const schedule other = acquire_at(1, 3, 4);
    const schedule late = held + moved + schedule{tick} + extended + schedule{tick} + armed + other;
    // The new list shares server 0. Server 2 isn't moved in time.
    const schedule half{move(0, 0), move(0, 1), move(0, 3), move(0, 4), move_wait(0)};
    const schedule fallback = acquire_at(0, 1, 2) + schedule{save(1)} + half +
                              schedule{restore(1), tick, extend_begin(0), extend(0, 1), extend(0, 2)};
    scenario without_old = change_by_clocks(three, 0b11100);
    without_old.guardians[1].reach = 0b11000;
    return {
        {"group missing in acquire", rule::group_in_acquire, with_change(0b00011, 0b11111),
         moved +
             schedule{
                 tick, tick, move_check(0, 0), move_check(0, 1), move_decide(0), move_arm(0, 0),
                 move_arm(0, 1), move_arm(0, 2), move_arm(0, 3), move_arm(0, 4)} +
             held + schedule{begin(1), acquire(1, 2), acquire(1, 3), acquire(1, 4)},
         invariant::exclusion},
        {"group missing in extend", rule::group_in_extend, with_change(three, 0b11100), late,
         invariant::exclusion},
        {"extension under another group", rule::lease_keeps_group, with_change(three, 0b11100), late,
         invariant::exclusion},
        {"fewer than q moved", rule::move_quorum, with_change(three, 0b11001),
         schedule{
             move(0, 0), move(0, 3), move(0, 4), move_wait(0), tick, tick, move_check(0, 0), move_decide(0),
             move_arm(0, 3), move_arm(0, 4)} +
             acquire_at(0, 1, 2) + other,
         invariant::exclusion},
        {"change without a wait", rule::change_waits, with_change(three, 0b11100),
         held + moved + armed + other, invariant::exclusion},
        {"left master not retired", rule::left_out_retired, with_change(three, 0b11100),
         moved + schedule{tick, tick} + armed + held + other, invariant::exclusion},
        {"no check after the wait", rule::check_after_wait, with_change(three, 0b11001),
         fallback + schedule{tick} + armed + other, invariant::exclusion},
        {"a master that was moved late counts", rule::late_moves_excluded, with_change(three, 0b11001),
         fallback +
             schedule{
                 move(0, 2), tick, move_check(0, 0), move_check(0, 2), move_decide(0), move_arm(0, 3),
                 move_arm(0, 4)} +
             other,
         invariant::exclusion},
        {"`new` counted", rule::fresh_excluded, without_old,
         schedule{move(0, 3), move(0, 4), watch(1, 3), watch(1, 4)} + arm_by_clock(1, 3, 4) + held + other +
             schedule{raise(1, 3), raise(1, 4)},
         invariant::exclusion},
        {"`new` not kept after a restart", rule::fresh_stays, without_old,
         schedule{move(0, 3), move(0, 4), restart(3), restart(4)} + arm_by_clock(1, 3, 4) + held + other +
             schedule{raise(1, 3), raise(1, 4)},
         invariant::exclusion},
    };
}

std::vector<ablation> repeated_changes()
{
    const std::vector<int> all{0, 1, 2, 3, 4};
    scenario ignored = change_by_clocks(three, 0b11001);
    scenario equal = with_change(three, 0b11100);
    equal.attempts[1].hint = 0;
    const schedule moved{move(0, 0), move(0, 1),   move(0, 2), move(0, 3),
                         move(0, 4), move_wait(0), tick,       tick};
    const schedule armed{move_check(0, 0), move_check(0, 1), move_decide(0), move_arm(0, 3), move_arm(0, 4)};
    const schedule second{begin(2), acquire(2, 3), acquire(2, 4), raise(2, 3), raise(2, 4)};
    const schedule back{restore(3), restore(4), quarantine(1, 3), quarantine(1, 4)};
    return {
        {"floor from unarmed moved masters", rule::move_deletes_floor, equal,
         schedule{save(0)} + acquire_at(0, 0, 1) + schedule{end(0), restore(0)} +
             change_group(0, {0, 2, 3, 4}, 0, 2, {3, 4}) + acquire_at(1, 3, 4),
         invariant::unique},
        {"a second run takes up the old wait", rule::rerun_waits, with_change(three, 0b11100),
         acquire_at(0, 0, 1) +
             schedule{
                 move(0, 0), move(0, 1), move(0, 2), move(0, 3), move(0, 4), move(1, 0), move(1, 1),
                 move(1, 2), move(1, 3), move(1, 4), move_wait(1), move_check(1, 0), move_check(1, 1),
                 move_decide(1), move_arm(1, 3), move_arm(1, 4)} +
             acquire_at(1, 3, 4),
         invariant::exclusion},
        {"a second run with counters only", rule::rerun_by_clock, equal,
         moved + schedule{save(3), save(4)} + armed + acquire_at(1, 3, 4) + schedule{end(1)} + back +
             change_group(1, all, 0, 1, {3, 4}) + second,
         invariant::unique},
        {"a second run arms more", rule::rerun_arms_nobody, change_by_clocks(three, 0b11100),
         moved + schedule{save(4)} + armed + climb(1, 3, 4) +
             schedule{
                 begin(1), acquire(1, 3), acquire(1, 4), raise(1, 3), raise(1, 4), end(1), restore(4),
                 quarantine(1, 4)} +
             change_group(1, all, 0, 1, {2, 4}) +
             schedule{begin(2), acquire(2, 2), acquire(2, 4), raise(2, 2), raise(2, 4)},
         invariant::order},
        {"another group seen but ignored", rule::other_group_seen, ignored,
         schedule{save(1)} + change_group(0, {0, 1, 3, 4}, 0, 1, {3, 4}) + schedule{restore(1), restart(2)} +
             arm_by_clock(0, 1, 2) + acquire_at(1, 3, 4) + acquire_at(0, 1, 2) +
             schedule{raise(0, 1), raise(0, 2)},
         invariant::exclusion},
        {"takeover without the other run's list", rule::takeover_moves_all, with_two_changes(0b11001, three),
         change_group(0, {0, 1, 3, 4}, 0, 1, {0, 3, 4}) + change_group(1, {0, 1, 2}, 0, 2, {1, 2}) +
             acquire_at(1, 3, 4) + acquire_at(2, 1, 2),
         invariant::exclusion},
    };
}

// ---- The checks of the mechanism ----------------------------------------------------------------

std::vector<ablation> mechanisms()
{
    const schedule forgotten{flush(0), quarantine(0, 0)};
    const schedule moved{move(0, 0), move(0, 1), move(0, 2), move(0, 3), move(0, 4)};
    std::vector<ablation> all{
        {"check: armed too early", rule::wait, three_masters(),
         forgotten + schedule{read(0, 0, 1), read(0, 0, 2), arm(0, 0)}, invariant::quarantine},
        {"check: vote of another incarnation", rule::acquire_compares_replid, three_masters(),
         schedule{save(0), begin(1), restore(0), acquire(1, 0)}, invariant::quarantine},
        {"check: stranger armed", rule::record, with_stranger(),
         schedule{quarantine(1, 3)} + arm_after_wait(1, 3, 0, 1), invariant::stranger},
        {"check: floor too low", rule::counters_restored, without_hints(),
         acquire_at(0, 0, 1) + forgotten + schedule{tick, tick, arm(0, 0)}, invariant::floor},
        {"check: two markers", rule::move_clears_databases, with_change(three, 0b11001),
         schedule{swap(0)} + moved +
             schedule{
                 move_wait(0), tick, tick, move_check(0, 1), move_check(0, 2), move_decide(0),
                 move_arm(0, 0)},
         invariant::one_marker},
    };
    for (ablation& a : all)
        a.wanted = checks::all;
    return all;
}

} // namespace

std::vector<ablation> ablations()
{
    std::vector<ablation> all;
    for (const auto& part :
         {tokens(), incarnations(), leases(), clocks(), changes(), repeated_changes(), mechanisms()})
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

} // namespace model
