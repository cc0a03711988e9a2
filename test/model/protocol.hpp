// SPDX-License-Identifier: BSL-1.0
// The steps of the protocol in a scenario: which are possible in a state, and what each does.
#pragma once

#include "scenario.hpp"

#include <string>
#include <vector>

namespace model
{

enum class kind : number
{
    tick,
    // An attempt `who` and the server `at`.
    look,
    begin,
    acquire,
    repeat_acquire,
    receive,
    raise,
    repeat_raise,
    receive_raise,
    end,
    release,
    extend_begin,
    extend,
    rejoin,
    // Another resource that has the same slot.
    other_acquire,
    // A guardian `who` and the server `at`.
    quarantine,
    watch,
    read, // Of the server `of`.
    arm,
    look_unarmed,
    raise_floor,
    raise_other, // The floor of the server `of`, to that of `at`.
    accuse,
    // A run `who` and the server `at`.
    move,
    move_wait,
    move_check,
    move_decide,
    move_arm,
    // Faults of the server `at`.
    flush,
    replace,
    restart,
    swap,
    save,
    restore,
    power_cut,
    drop_hash,
    vanish,
    jump,
    count,
};

struct action
{
    kind what = kind::tick;
    number who = 0;
    number at = 0;
    number of = 0;
};

std::string to_string(const action& step);

enum class invariant : number
{
    none,
    exclusion, // G1: two valid leases.
    unique,    // G2: a token was issued twice.
    order,     // G3: a token isn't larger than one that was issued before its acquire began.
    rising,    // G4: tokens were issued in another order.
    // Checks of the mechanism, which fail earlier than the promises.
    quarantine, // A master voted or was armed within max_ttl of a loss of data.
    stranger,   // A server that isn't on the group's list was armed.
    one_marker, // Two databases of a server have a marker that entitles to vote.
    floor,      // A quorum of armed masters has counters below a token that was issued.
};

const char* to_string(invariant broken);

// Which invariants are checked.
enum class checks
{
    all,
    promises, // G1 to G4.
};

class protocol
{
  public:
    // The scenario has to outlive it.
    explicit protocol(const scenario& bounds, checks wanted = checks::all);

    state initial() const;
    void list_steps(const state& now, std::vector<action>& steps) const;
    bool is_possible(const state& now, const action& step) const;
    // Takes a step that is possible.
    invariant take(state& now, const action& step) const;
    // Equal for states that differ in names only: of nonces, replids, and servers that play the same part.
    std::uint64_t hash(const state& now) const;
    const scenario& bounds() const { return s_; }

  private:
    // Clients: attempts.cpp
    bool attempt_can(const state& now, const action& step) const;
    invariant attempt_does(state& now, const action& step) const;
    void look(state& now, int who, int at) const;
    bool can_begin(const state& now, int who) const;
    void begin(state& now, int who) const;
    number acquire_at(state& now, int who, int at) const;
    bool accepts_acquire(const server& there, const vote& mine, int group) const;
    invariant answer_acquire(state& now, int who, int at) const;
    bool raise_at(state& now, int who, int at) const;
    invariant decide(state& now, int who) const;
    int exact_counters(const attempt& mine) const;
    invariant issue(state& now, int who) const;
    void forget_answers(state& now, int who) const;
    void end(state& now, int who) const;
    void release_at(state& now, int who, int at) const;
    bool can_extend(const state& now, int who) const;
    void begin_extension(state& now, int who) const;
    invariant extend_at(state& now, int who, int at) const;
    extension extension_answer(state& now, int who, int at) const;
    invariant count_extension(state& now, int who) const;
    void rejoin_at(state& now, int who, int at) const;
    number group_of_extension(int who) const;
    invariant check_exclusion(const state& now) const;

    // The background of a client: guardians.cpp
    bool guardian_can(const state& now, const action& step) const;
    invariant guardian_does(state& now, const action& step) const;
    bool can_quarantine(const state& now, int who, int at) const;
    bool is_on_record(const client& me, int at) const;
    int others_of_group(const state& now, const client& me, int at) const;
    void put_into_quarantine(state& now, int who, int at, reason why) const;
    bool can_watch(const state& now, int who, int at) const;
    void begin_watch(state& now, int who, int at) const;
    bool waits_for_this(const state& now, int who, int at) const;
    bool is_for_clock(const marker& guard, number group) const;
    bool has_kept_counters(const server& there, number group) const;
    bool can_read(const state& now, int who, int at, int of) const;
    void read(state& now, int who, int at, int of) const;
    bool can_arm(const state& now, int who, int at) const;
    bool can_arm_by_clock(const state& now, int who, int at) const;
    int counters_needed(const quarantine_watch& mine, const client& me) const;
    void raise_floor(state& now, int who, int at) const;
    bool can_raise_other(const state& now, int who, int at, int of) const;
    void raise_other(state& now, int who, int at, int of) const;
    int witnesses(const state& now, int who) const;
    bool is_settling(const state& now, int who) const;
    invariant arm(state& now, int at, number least_floor) const;
    bool counts_as_unarmed(const state& now, const client& me, int at) const;
    void look_unarmed(state& now, int who, int at) const;
    bool sees_other_group(const state& now, const client& me) const;
    bool can_accuse(const state& now, int who, int at) const;

    // The change of a group: runs.cpp
    bool run_can(const state& now, const action& step) const;
    invariant run_does(state& now, const action& step) const;
    mask old_list(const run& mine) const;
    bool can_move(const state& now, int who, int at) const;
    void move(state& now, int who, int at) const;
    void write_move(state& now, int who, int at) const;
    bool can_wait(const state& now, int who) const;
    void begin_wait(state& now, int who) const;
    bool can_check(const state& now, int who, int at) const;
    void check_moved(state& now, int who, int at) const;
    bool can_decide(const state& now, int who) const;
    void decide_floor(state& now, int who) const;

    // The world: faults.cpp
    bool fault_can(const state& now, const action& step) const;
    void fault_does(state& now, const action& step) const;
    bool can_tick(const state& now) const;
    void tick(state& now) const;
    void tick_attempt(state& now, int who) const;
    void lose(state& now, int at, bool new_replid) const;

    bool is_same_text(const marker& one, const marker& other) const;
    bool is_good(const server& there, number group) const;
    invariant check_state(const state& now) const;
    std::uint64_t hash_of_server(const state& now, int at) const;
    std::uint64_t role_of_server(int at) const;

    bool has(rule r) const { return s_.has(r); }
    template <class T>
    static const T& nth(const std::vector<T>& list, int i)
    {
        return list[static_cast<std::size_t>(i)];
    }
    int attempts() const { return static_cast<int>(s_.attempts.size()); }
    int guardians() const { return static_cast<int>(s_.guardians.size()); }
    int runs() const { return static_cast<int>(s_.runs.size()); }

    const scenario& s_;
    checks wanted_;
    table<std::uint64_t, max_servers> roles_{};
};

constexpr number far_ahead = 4; // The part of 2^20: a hint may lead by as much.

inline number counter_of(const data& there)
{
    return there.floor == missing || there.slot > there.floor ? there.slot : there.floor;
}

} // namespace model
