// SPDX-License-Identifier: BSL-1.0
// The steps as a whole, the checks of a state, its hash, and the words of a trace.

#include "protocol.hpp"

#include <algorithm>

namespace model
{

namespace
{

enum class actor
{
    world,
    attempt,
    guardian,
    run,
    server,
};

struct description
{
    actor who;
    bool at_server;
    const char* words;
};

constexpr std::array<description, static_cast<std::size_t>(kind::count)> descriptions{{
    {actor::world, false, "a tick of time"},
    {actor::attempt, true, "looks at"},
    {actor::attempt, false, "begins: T1, and acquires to all armed masters"},
    {actor::attempt, true, "acquire runs on"},
    {actor::attempt, true, "acquire runs again on"},
    {actor::attempt, true, "receives the answer of"},
    {actor::attempt, true, "raise runs on"},
    {actor::attempt, true, "raise runs again on"},
    {actor::attempt, true, "receives the answer to the raise of"},
    {actor::attempt, false, "ends, or releases its lease"},
    {actor::attempt, true, "release runs on"},
    {actor::attempt, false, "begins an extension"},
    {actor::attempt, true, "extension runs on"},
    {actor::attempt, true, "re-join runs on"},
    {actor::server, true, "another resource with the same slot is acquired on"},
    {actor::guardian, true, "puts into quarantine"},
    {actor::guardian, true, "begins to wait for"},
    {actor::guardian, true, "reads, to arm"},
    {actor::guardian, true, "arms"},
    {actor::guardian, true, "looks whether it is unarmed:"},
    {actor::guardian, true, "raises the floor by the clock on"},
    {actor::guardian, true, "raises the floor of another to that of"},
    {actor::guardian, true, "sees the clock ahead, and puts into quarantine"},
    {actor::run, true, "moves"},
    {actor::run, false, "begins to wait"},
    {actor::run, true, "checks after the wait"},
    {actor::run, false, "decides about the floor"},
    {actor::run, true, "arms"},
    {actor::server, true, "FLUSHALL on"},
    {actor::server, true, "an empty server replaces"},
    {actor::server, true, "restart with all data of"},
    {actor::server, true, "SWAPDB on"},
    {actor::server, true, "a copy is made of"},
    {actor::server, true, "fallback to the copy of"},
    {actor::server, true, "power cut of"},
    {actor::server, true, "the hash of counters is lost on"},
    {actor::server, true, "the key vanishes on"},
    {actor::server, true, "the clock jumps ahead on"},
}};

const description& describe(kind what)
{
    return descriptions[static_cast<std::size_t>(what)];
}

std::uint64_t mix(std::uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// A hash of numbers, in which nonces and replids count only as the order of their first appearance.
class canonical_hash
{
  public:
    explicit canonical_hash(std::uint64_t seed) : value_{seed} {}

    void add(std::initializer_list<int> values)
    {
        for (const int v : values)
        {
            word_ = word_ << 8 | static_cast<number>(v);
            if (++bytes_ == 8)
                flush();
        }
    }
    void add(const marker& m)
    {
        add(
            {static_cast<int>(m.state) << 4 | static_cast<int>(m.why), m.group, nonces_.rank(m.nonce),
             replids_.rank(m.replid)});
    }
    void add(const data& d)
    {
        add(d.guard);
        add({d.slot, d.floor, d.owner, d.ttl});
    }
    void add_replid(number replid) { add({replids_.rank(replid)}); }
    std::uint64_t result()
    {
        flush();
        return mix(value_);
    }

  private:
    struct ranks
    {
        table<number, 32> seen{};
        int count = 0;
        int rank(number name)
        {
            if (name == 0)
                return 0;
            for (int i = 0; i < count; i++)
                if (seen[i] == name)
                    return i + 1;
            seen[count++] = name;
            return count;
        }
    };

    void flush()
    {
        value_ =
            mix(value_ + 0x9e3779b97f4a7c15 + static_cast<unsigned>(bytes_)) ^ word_ * 0xff51afd7ed558ccd;
        word_ = 0;
        bytes_ = 0;
    }

    std::uint64_t value_;
    std::uint64_t word_ = 0;
    int bytes_ = 0;
    ranks nonces_;
    ranks replids_;
};

} // namespace

std::string to_string(const action& step)
{
    const description& d = describe(step.what);
    std::string text;
    const auto name = [&](const char* what) { text += what + std::to_string(step.who) + ' '; };
    if (d.who == actor::attempt)
        name("attempt ");
    else if (d.who == actor::guardian)
        name("guardian ");
    else if (d.who == actor::run)
        name("run ");
    text += d.words;
    if (d.at_server)
        text += " server " + std::to_string(step.at);
    if (step.what == kind::read || step.what == kind::raise_other)
        text += ", server " + std::to_string(step.of);
    return text;
}

const char* to_string(invariant broken)
{
    constexpr std::array names{"none",       "G1 exclusion",   "G2 unique",  "G3 order", "G4 rising",
                               "quarantine", "stranger armed", "one marker", "floor"};
    return names[static_cast<std::size_t>(broken)];
}

protocol::protocol(const scenario& bounds, checks wanted) : s_{bounds}, wanted_{wanted}
{
    for (int at = 0; at < s_.servers; at++)
        roles_[at] = role_of_server(at);
}

state protocol::initial() const
{
    state now;
    for (int m = 0; m < s_.servers; m++)
    {
        server& there = now.servers[m];
        there.replid = 1;
        if (contains(s_.leftovers, m))
            there.db[0].floor = 3;
        if (!contains(s_.lists[1], m) || contains(s_.fresh, m))
            continue;
        there.db[0].guard = {standing::armed, 1, reason::fresh, 1, 1};
        there.db[0].floor = 0;
        if ((s_.fault_kinds & fault::power_cut) != 0)
            there.durable = there.db;
    }
    now.left = {s_.faults, s_.vanishing, s_.saves, s_.jumps, s_.others, s_.repeats};
    now.time = s_.clocks ? 1 : 0;
    now.ticks = s_.clocks ? s_.ticks : number{0};
    return now;
}

bool protocol::is_same_text(const marker& one, const marker& other) const
{
    marker compared = one;
    if (!has(rule::nonce))
        compared.nonce = other.nonce;
    if (!has(rule::group_in_acquire))
        compared.group = other.group;
    return compared == other;
}

// Whether a client of the group may ask it for locks.
bool protocol::is_good(const server& there, number group) const
{
    const data& d = there.db[0];
    const bool matches = d.guard.group == group || !has(rule::group_in_acquire);
    const bool same_replid = d.guard.replid == there.replid || !has(rule::acquire_compares_replid);
    return d.guard.state == standing::armed && matches && same_replid &&
           (d.floor != missing || !has(rule::floor_required));
}

bool protocol::is_possible(const state& now, const action& step) const
{
    switch (describe(step.what).who)
    {
    case actor::world:
        return can_tick(now);
    case actor::attempt:
        return step.who < attempts() && attempt_can(now, step);
    case actor::guardian:
        return step.who < guardians() && guardian_can(now, step);
    case actor::run:
        return step.who < runs() && run_can(now, step);
    case actor::server:
        return fault_can(now, step);
    }
    return false;
}

invariant protocol::take(state& now, const action& step) const
{
    invariant broken = invariant::none;
    switch (describe(step.what).who)
    {
    case actor::world:
        tick(now);
        break;
    case actor::attempt:
        broken = attempt_does(now, step);
        break;
    case actor::guardian:
        broken = guardian_does(now, step);
        break;
    case actor::run:
        broken = run_does(now, step);
        break;
    case actor::server:
        fault_does(now, step);
        break;
    }
    return broken == invariant::none && wanted_ == checks::all ? check_state(now) : broken;
}

void protocol::list_steps(const state& now, std::vector<action>& steps) const
{
    steps.clear();
    const std::array counts{1, attempts(), guardians(), runs(), 1};
    for (int k = 0; k < static_cast<int>(kind::count); k++)
    {
        const description& d = descriptions[static_cast<std::size_t>(k)];
        const int places = d.at_server ? s_.servers : 1;
        const int others =
            static_cast<kind>(k) == kind::read || static_cast<kind>(k) == kind::raise_other ? s_.servers : 1;
        for (int who = 0; who < counts[static_cast<std::size_t>(d.who)]; who++)
            for (int at = 0; at < places; at++)
                for (int of = 0; of < others; of++)
                {
                    const action step{
                        static_cast<kind>(k), static_cast<number>(who), static_cast<number>(at),
                        static_cast<number>(of)};
                    if (is_possible(now, step))
                        steps.push_back(step);
                }
    }
}

invariant protocol::check_state(const state& now) const
{
    for (int g = 1; g < max_groups; g++)
    {
        int lagging = 0;
        for (int m = 0; m < s_.servers; m++)
        {
            const server& there = now.servers[m];
            const bool votes = contains(s_.lists[g], m) && is_good(there, static_cast<number>(g));
            lagging += votes && counter_of(there.db[0]) < now.largest;
            const marker& hidden = there.db[1].guard;
            if (votes && hidden.state == standing::armed && hidden.replid == there.replid)
                return invariant::one_marker;
        }
        if (lagging != 0 && lagging >= quorum(s_.lists[g]))
            return invariant::floor;
    }
    return invariant::none;
}

// Servers with equal roles can be exchanged.
std::uint64_t protocol::role_of_server(int at) const
{
    std::uint64_t role = 1;
    const auto add = [&](bool bit) { role = role << 1 | (bit ? 1 : 0); };
    for (int g = 1; g < max_groups; g++)
        add(contains(s_.lists[g], at));
    for (const auto* clients : {&s_.attempts, &s_.guardians})
        for (const client& c : *clients)
        {
            add(contains(c.list, at));
            add(contains(c.reach, at));
        }
    add(contains(s_.fresh, at));
    add(contains(s_.leftovers, at));
    add(at == 0 && !has(rule::queue_grant_counts));
    return role;
}

std::uint64_t protocol::hash_of_server(const state& now, int at) const
{
    canonical_hash h{roles_[at]};
    const server& there = now.servers[at];
    h.add(there.db[0]);
    for (const data* d : {&there.db[1], &there.copy[0], &there.copy[1], &there.durable[0], &there.durable[1]})
    {
        const bool used = !(*d == data{});
        h.add({used ? 1 : 0});
        if (used)
            h.add(*d);
    }
    h.add_replid(there.replid);
    h.add({there.jumps, there.covered, there.settled, there.since_loss});
    for (int i = 0; i < attempts(); i++)
    {
        const vote& v = now.attempts[i].votes[at];
        h.add(v.known);
        h.add(
            {v.known_jumps, static_cast<int>(v.acquire) << 4 | static_cast<int>(v.raise), v.granted,
             v.raised << 4 | static_cast<int>(v.extend)});
    }
    for (int i = 0; i < guardians(); i++)
    {
        const quarantine_watch& w = now.guardians[i].watches[at];
        if (w.text.state != standing::none)
            h.add(w.text);
        h.add_replid(w.witness);
        h.add({w.wait, w.target | w.read << 1 | w.unarmed << 2 | w.clocks << 3 | w.settle << 4});
    }
    for (int i = 0; i < runs(); i++)
    {
        const moved& m = now.runs[i].servers[at];
        h.add(m.text);
        h.add({m.read | m.counts << 1 | m.late << 2});
    }
    return h.result();
}

std::uint64_t protocol::hash(const state& now) const
{
    std::uint64_t servers = 0;
    for (int at = 0; at < s_.servers; at++)
        servers += hash_of_server(now, at);
    canonical_hash h{servers};
    for (int i = 0; i < attempts(); i++)
    {
        const attempt& a = now.attempts[i];
        h.add(
            {static_cast<int>(a.now) << 4 | a.issued, a.validity, a.token, a.begun_after, a.extending,
             a.extensions});
    }
    for (int i = 0; i < guardians(); i++)
        h.add({now.guardians[i].largest});
    for (int i = 0; i < runs(); i++)
    {
        const run& r = now.runs[i];
        h.add({static_cast<int>(r.now), r.wait, r.largest, r.old_groups, r.foreign});
    }
    const budgets& b = now.left;
    h.add(
        {b.faults, b.vanishing, b.saves, b.jumps, b.others, b.repeats, now.time, now.ticks, now.largest,
         now.exclusive ? 1 : 0});
    return h.result();
}

} // namespace model
