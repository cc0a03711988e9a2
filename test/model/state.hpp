// SPDX-License-Identifier: BSL-1.0
// The state of the model of the guarded mode: servers, lock attempts, guardians and provisioning runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace model
{

using number =
    std::uint8_t; // Counters, times in ticks, identities. Small, because states are copied all the time.
using mask = std::uint8_t; // A set of servers or groups, one bit each.

// An array whose index is an int, as servers and parties are numbered everywhere here.
template <class T, int size>
struct table : std::array<T, static_cast<std::size_t>(size)>
{
    constexpr T& operator[](int i) { return this->data()[i]; }
    constexpr const T& operator[](int i) const { return this->data()[i]; }
};

constexpr int max_groups = 4; // They are numbered from 1.
constexpr int max_servers = 5;
constexpr int max_attempts = 4;
constexpr int max_guardians = 2;
constexpr int max_runs = 2;
constexpr number missing = 255; // A floor that isn't there.

// The part of a marker that decides about votes.
enum class standing : number
{
    none, // There is no marker.
    quarantine,
    armed,
    retired,
};

// Why a quarantine began.
enum class reason : number
{
    fresh, // "new" in the marker: written by provision.
    stale,
    emptied,
    clock,
};

// The text of a marker. Two markers are the same text if all members are equal.
struct marker
{
    standing state = standing::none;
    number group = 0;
    reason why = reason::fresh;
    number nonce = 0;
    number replid = 0;

    bool operator==(const marker&) const = default;
};

// One database of a server.
struct data
{
    marker guard;
    number slot = 0; // The counter of the resource.
    number floor = missing;
    number owner = 0; // The attempt that has the key, from 1. 0: no key.
    number ttl = 0;   // Ticks until the key expires.

    bool operator==(const data&) const = default;
};

struct server
{
    table<data, 2> db{};      // A client sees db[0]. SWAPDB exchanges them.
    table<data, 2> copy{};    // A backup or a replica.
    table<data, 2> durable{}; // What a power cut leaves: the data at the last tick.
    number replid = 0;
    number jumps = 0;   // How often its clock has jumped ahead.
    number covered = 0; // Those of them before the quarantine began.
    number settled = 0; // Those of them that every client has to know: a quarantine has ended since.
    number since_loss =
        0; // Ticks for which it must not vote, counted from the last loss of data. For a check only.
    number next_nonce = 1; // Sources of new identities. They don't distinguish states.
    number next_replid = 1;
};

enum class request : number
{
    none,
    sent,
    answered, // The answer is on its way to the client.
    received,
};

// The result of one master in an extension.
enum class extension : number
{
    none,
    sent,
    granted,
    not_ours,
    failed,
    rejoining, // A SET NX is on its way, after not_ours.
};

// What an attempt and one master have exchanged.
struct vote
{
    marker known;           // The text that the client saw before.
    number known_jumps = 0; // The clock that it saw.
    request acquire = request::none;
    number granted = 0; // The counter of the answer, 0 for a refusal.
    request raise = request::none;
    number raised = 0; // The answer to the raise.
    extension extend = extension::none;
};

enum class phase : number
{
    idle,
    acquiring,
    held,
    ended, // Lost, failed or released: the releases are on their way.
};

// One acquire and the lease that it may end with.
struct attempt
{
    table<vote, max_servers> votes{};
    phase now = phase::idle;
    number validity = 0;    // Ticks left.
    number token = 0;       // From the moment it is chosen.
    number issued = 0;      // 1: the token was returned to the caller.
    number begun_after = 0; // The largest token that had been issued when it began.
    number extending = 0;   // Validity that the running extension would give. 0: none is running.
    number extensions = 0;  // How many have begun.
    number hint = 0;
};

// What a guardian knows of one master.
struct quarantine_watch
{
    marker text;        // The quarantine it waits for. standing::none: none.
    number wait = 0;    // Ticks left.
    number target = 0;  // 1: it reads counters for this one.
    number read = 0;    // 1: its counter was read for the target.
    number unarmed = 0; // 1: seen unarmed in the running round of looks.
    number clocks = 0;  // 1: q masters were seen unarmed since the wait began.
    number settle = 0;  // 1 + ticks left after a floor was raised by the clock. 0: it wasn't.
    number witness = 0; // The replid of the server when it got the floor of the target. 0: it didn't.
};

// The part of a client that ends quarantines.
struct guardian
{
    table<quarantine_watch, max_servers> watches{};
    number largest = 0; // Of the counters read for the target, then its floor.
};

// What a provisioning run knows of one server.
struct moved
{
    marker text;       // What it has written, or found of an earlier run. standing::none: nothing.
    number read = 0;   // 1: its text was checked after the wait, and its counter was read if it counts.
    number counts = 0; // 1: it had a floor.
    number late = 0;   // 1: it was moved during the wait.
};

enum class stage : number
{
    idle,
    moving,
    waiting,
    arming,
};

// `redlock provision`, here always a change of the group.
struct run
{
    table<moved, max_servers> servers{};
    stage now = stage::idle;
    number wait = 0;
    number largest = 0;
    mask old_groups = 0; // Groups of which a quorum has to be moved.
    number foreign = 0;  // 1: it found markers that it didn't write.
};

// Left-overs of the bounds of a scenario.
struct budgets
{
    number faults = 0;
    number vanishing = 0;
    number saves = 0;
    number jumps = 0;
    number others = 0; // Acquires of another resource with the same slot.
    number repeats = 0;

    bool operator==(const budgets&) const = default;
};

struct state
{
    table<server, max_servers> servers{};
    table<attempt, max_attempts> attempts{};
    table<guardian, max_guardians> guardians{};
    table<run, max_runs> runs{};
    budgets left{};
    number time = 0;       // The clock of all masters, in the unit of tokens. Only with the policy `clocks`.
    number ticks = 0;      // Left. Only where time counts.
    number largest = 0;    // The largest token issued.
    bool exclusive = true; // G1 and G4 are still promised: no key has vanished.
};

} // namespace model
