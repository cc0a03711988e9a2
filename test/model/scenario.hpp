// SPDX-License-Identifier: BSL-1.0
// The rules of the protocol, each of which can be switched off, and the bounds of a scenario.
#pragma once

#include "state.hpp"

#include <bit>
#include <bitset>
#include <initializer_list>
#include <string>
#include <vector>

namespace model
{

// An ablation switches one of these off. The comments say what the protocol does without it.
enum class rule : number
{
    second_phase,            // The largest of q counters is the token at once.
    quorum_of_exact,         // One exact counter less is enough.
    exactly_t,               // A counter above T counts as T.
    raise_compares_owner,    // A raise is acknowledged to any attempt.
    raise_compares_marker,   // A raise looks at the owner only.
    raise_compares_replid,   // A raise looks at the text, which an older copy has as well.
    validity_last,           // The validity isn't computed again after the raise.
    queue_grant_counts,      // Server 0, the queue master, sets the key without raising the counter.
    counter_kept,            // A release deletes the counter.
    floor_required,          // A missing hash counts as 0.
    acquire_compares_text,   // An acquire looks at the replid only.
    acquire_compares_replid, // An acquire looks at the text only.
    wait,                    // A quarantine ends at once.
    nonce,                   // Texts of two quarantines are equal.
    counters_restored,       // Arming reads no counters.
    read_of_b,               // Counters of b - 1 are enough.
    read_after_wait,         // Counters are read during the wait.
    read_of_armed,           // Counters of masters in quarantine count.
    other_databases,         // Markers of other databases are left.
    arm_compares_text,       // Arming replaces any marker of a quarantine.
    record,                  // A server that isn't on the group's record is armed.
    group_in_acquire,        // Groups aren't compared in an acquire.
    group_in_extend,         // Groups aren't compared in an extension.
    lease_keeps_group,       // An extension names the group that the client has resolved now.
    expired_not_extended,    // An extension's answers count when the lease has expired.
    extend_compares_owner,   // An extension counts a missing key.
    rejoin_needs_absence,    // A re-join takes the key of another attempt.
    clocks_need_answers,     // By clocks: an unreachable master counts as unarmed.
    clocks_exclude_emptied,  // By clocks: an emptied master counts as stale.
    emptied_stays,           // The reason `emptied` of an older quarantine becomes `stale`.
    fresh_stays,             // The reason `new` of an older quarantine becomes `stale`.
    fresh_excluded,          // By clocks: a master of a half-moved list counts.
    floor_by_clock,          // By clocks: the floor is the largest counter.
    floor_leads,             // Armed at once: the floor is the time, without two hours.
    floor_settles,           // By clocks: the command that raises the floor arms as well.
    floor_of_quorum,         // By clocks: only the master that is armed has the floor before.
    other_group_seen,        // By clocks: another group on the list is ignored.
    clock_compared,          // A vote of a master whose clock has jumped counts.
    clock_of_incarnation,    // A master in quarantine for its clock counts as armed, also after a restart.
    clock_needs_floor,       // It does without its hash of counters.
    move_quorum,             // A change moves one old master less.
    change_waits,            // A change doesn't wait.
    left_out_retired,        // An old master that isn't on the new list keeps its marker.
    check_after_wait,        // Moved masters aren't looked at after the wait.
    move_deletes_floor,      // Counters of moved masters that weren't armed count.
    rerun_waits,             // A second run takes up the wait of the first.
    rerun_by_clock,          // A second run's floor is the largest counter.
    rerun_arms_nobody,       // A second run arms although one is armed.
    takeover_moves_all,      // A run overwrites the markers of another one as if they were the old group's.
    move_clears_databases,   // A change leaves markers in other databases.
    late_moves_excluded,     // A master that was moved during the wait counts after it.
    count,
};

using rule_set = std::bitset<static_cast<std::size_t>(rule::count)>; // Those that are switched off.

// The masters of a group, and the reach of a client that uses it.
struct client
{
    number group = 1;
    mask list = 0; // The servers that its names lead to.
    number max_ttl = 2;
    number hint = 0;
    mask reach = 0xff;
    bool newcomer = false; // It knows no clock of a master from before.

    bool operator==(const client&) const = default;
};

struct change
{
    number from = 1;
    number to = 2;
    bool takeover = false; // It may replace the markers of another unfinished run.
};

// Which faults may use the budget of faults.
namespace fault
{
constexpr number flush = 1;      // Empties a server; it keeps its replid.
constexpr number replace = 2;    // Empties a server, with a new replid.
constexpr number restart = 4;    // A new replid, all data kept.
constexpr number swap = 8;       // SWAPDB.
constexpr number restore = 16;   // A copy's data, with a new replid.
constexpr number power_cut = 32; // The data of the last tick, with a new replid.
constexpr number drop_hash = 64; // The hash of counters is evicted.
constexpr number all = 127;
} // namespace fault

struct scenario
{
    std::string name;
    int servers = 3;
    table<mask, max_groups> lists{{0, 0b111, 0, 0}}; // Of each group. Groups are numbered from 1.
    table<number, max_groups> max_ttls{{0, 2, 2, 2}};
    std::vector<client> attempts;
    std::vector<client> guardians;
    std::vector<change> runs;
    mask fresh = 0;     // Servers that are empty at the beginning.
    mask leftovers = 0; // Servers that have no marker, but counters of an earlier group.
    number faults = 0;
    number fault_kinds = 0;
    number vanishing = 0;
    number saves = 0;
    number jumps = 0;
    number others = 0;
    number repeats = 0;
    number extensions = 0;
    bool late_answers = false;
    bool separate_looks = false;
    bool clocks = false;           // The policy `clocks`, which needs the time.
    number ticks = 255;            // Bounds the time with the policy `clocks`.
    bool is_armed_at_once = false; // By clocks: the floor is the time and two hours, and isn't awaited.
    number tick_length = 1;        // In the unit of tokens.
    number hour = 6;               // In the same unit.
    rule_set off{};

    bool has(rule r) const { return !off[static_cast<std::size_t>(r)]; }
};

// Arms by the clock at once. A tick is longer than the tokens that a scenario can issue in it, as a power cut may lose both.
inline scenario armed_at_once(scenario s)
{
    s.is_armed_at_once = true;
    s.tick_length = 4;
    s.hour = 40;
    return s;
}

constexpr int size(mask servers)
{
    return std::popcount(servers);
}
constexpr int quorum(mask list)
{
    return size(list) / 2 + 1;
}
// The smallest number of masters that meets every quorum.
constexpr int blocking(mask list)
{
    return size(list) - quorum(list) + 1;
}
constexpr bool contains(mask set, int member)
{
    return ((set >> member) & 1) != 0;
}

} // namespace model
