// SPDX-License-Identifier: BSL-1.0
// The scenarios in which the protocol holds: small ones completely, large ones by random walks.

#include "catalogue.hpp"

#include <string_view>

namespace model
{

namespace
{

constexpr mask three = 0b111;

// Equal clients of three masters.
scenario three_masters(std::string name, std::size_t attempts, std::size_t guardians)
{
    scenario s;
    s.name = std::move(name);
    const client c{.list = three};
    s.attempts.assign(attempts, c);
    s.guardians.assign(guardians, c);
    return s;
}

scenario with_faults(scenario s, int faults, int kinds)
{
    s.faults = static_cast<number>(faults);
    s.fault_kinds = static_cast<number>(kinds);
    return s;
}

scenario short_ttl(scenario s)
{
    s.max_ttls = {{0, 1, 1, 1}};
    for (auto* clients : {&s.attempts, &s.guardians})
        for (client& c : *clients)
            c.max_ttl = 1;
    return s;
}

scenario with_extensions(scenario s, int extensions)
{
    s.extensions = static_cast<number>(extensions);
    return s;
}

scenario with_late_answers(scenario s)
{
    s.late_answers = true;
    return s;
}

// A key may vanish early, and a master may fall back to a copy.
scenario with_vanishing(scenario s)
{
    s.saves = s.vanishing = 1;
    return with_faults(s, 1, fault::restore);
}

scenario by_clocks(scenario s, int ticks)
{
    s.clocks = true;
    s.ticks = static_cast<number>(ticks);
    return s;
}

scenario with_hint_ahead(scenario s)
{
    s.attempts.back().hint = s.hour - 1;
    return s;
}

scenario with_jump(scenario s)
{
    s.jumps = 1;
    return s;
}

// Group 1 is changed to group 2. The first client knows the old list, the other one the new list.
scenario with_change(std::string name, mask from, mask to)
{
    scenario s = three_masters(std::move(name), 2, 0);
    s.servers = 5;
    s.lists = {{0, from, to, 0}};
    s.attempts[0].list = from;
    s.attempts[1].list = to;
    s.attempts[1].group = 2;
    s.runs = {{1, 2}};
    return s;
}

scenario with_leftovers(scenario s, mask servers)
{
    s.leftovers = servers;
    return s;
}

scenario with_second_run(scenario s, change wanted, mask list)
{
    s.runs.push_back(wanted);
    s.lists[wanted.to] = list;
    if (wanted.to == 3)
        s.attempts.push_back({.group = wanted.to, .list = list});
    return s;
}

// ---- Random walks -------------------------------------------------------------------------------

constexpr int all_losses =
    fault::flush | fault::replace | fault::restart | fault::swap | fault::restore | fault::drop_hash;

// Four attempts with different hints, two guardians, late and repeated messages, and many faults.
scenario many_faults(std::string name, int masters)
{
    scenario s = with_faults(three_masters(std::move(name), 4, 2), 6, all_losses);
    s.servers = masters;
    s.lists[1] = static_cast<mask>((1 << masters) - 1);
    for (auto* clients : {&s.attempts, &s.guardians})
        for (client& c : *clients)
            c.list = s.lists[1];
    s.attempts[1].hint = 3;
    s.attempts[2].hint = 6;
    s.saves = 3;
    s.extensions = s.others = 2;
    s.repeats = 1;
    s.late_answers = s.separate_looks = true;
    return s;
}

scenario vanishing(scenario s)
{
    s.vanishing = 2;
    return s;
}

// Power cuts take the last tick from the files, so older copies are left out.
scenario power_cuts(std::string name, int masters)
{
    scenario s = with_faults(
        many_faults(std::move(name), masters), 10, fault::power_cut | fault::restart | fault::flush);
    s.saves = 0;
    s.separate_looks = false;
    return with_hint_ahead(by_clocks(s, 20));
}

// One client connects after the jump, the others knew the clock.
scenario jumps(scenario s)
{
    s.jumps = 2;
    s.attempts[3].newcomer = true;
    return s;
}

// Two runs change the group. Two clients know the old list, the others the new one, of the third group if it exists.
scenario changes(std::string name, mask from, mask to, mask third = 0)
{
    scenario s = with_faults(many_faults(std::move(name), 5), 3, all_losses);
    s.lists = {{0, from, to, third}};
    s.leftovers = static_cast<mask>((to | third) & ~from);
    const number last = third != 0 ? 3 : 2;
    const auto use = [&](client& c, number group)
    {
        c.group = group;
        c.list = s.lists[group];
    };
    use(s.attempts[0], 1);
    use(s.attempts[1], 1);
    use(s.attempts[2], 2);
    use(s.attempts[3], last);
    use(s.guardians[0], third != 0 ? number{2} : number{1});
    use(s.guardians[1], last);
    s.runs = {{1, 2}, {1, last, true}};
    s.separate_looks = s.late_answers = false;
    return s;
}

} // namespace

std::vector<proof> exhaustive_proofs()
{
    constexpr int losses = fault::flush | fault::restart | fault::swap | fault::drop_hash;
    std::vector<proof> all;
    const auto add = [&](const scenario& where) { all.push_back({where}); };
    add(three_masters("no fault", 2, 0));
    add(with_late_answers(three_masters("late answers", 2, 0)));
    add(short_ttl(three_masters("three attempts", 3, 0)));
    add(with_faults(three_masters("a loss", 2, 1), 1, losses));
    add(short_ttl(with_faults(three_masters("a loss, two guardians", 2, 2), 1, losses)));
    add(short_ttl(with_faults(three_masters("emptied twice", 2, 1), 2, fault::flush)));
    add(with_late_answers(short_ttl(with_faults(three_masters("a loss, late answers", 2, 1), 1, losses))));
    add(with_extensions(with_faults(three_masters("an extension and a loss", 2, 1), 1, fault::flush), 1));
    add(short_ttl(with_vanishing(three_masters("a key vanishes, and a copy returns", 2, 0))));
    add(with_jump(three_masters("a clock jumps ahead", 2, 1)));
    add(short_ttl(with_jump(with_faults(three_masters("a clock jumps ahead, and a loss", 2, 1), 1, losses))));
    add(short_ttl(
        by_clocks(with_faults(three_masters("power cuts, by clocks", 1, 1), 3, fault::power_cut), 4)));
    add(with_hint_ahead(short_ttl(armed_at_once(
        by_clocks(with_faults(three_masters("power cuts, armed at once", 1, 1), 3, fault::power_cut), 4)))));
    add(with_change("change, one master stays", 0b00111, 0b11100));
    add(with_leftovers(with_change("change, a new master has counters", 0b00111, 0b11100), 0b10000));
    add(with_extensions(
        short_ttl(with_faults(with_change("change and a loss", 0b00111, 0b11001), 1, losses)), 1));
    add(short_ttl(with_second_run(with_change("change by two runs", 0b0011, 0b1100), {1, 2}, 0b1100)));
    add(short_ttl(with_second_run(with_change("two changes", 0b00111, 0b11001), {1, 3, true}, 0b00111)));
    return all;
}

std::vector<searched> searched_ablations()
{
    const auto all = exhaustive_proofs();
    std::vector<searched> searches;
    const auto in = [&](std::string_view name, std::initializer_list<rule> rules)
    {
        for (const proof& p : all)
            for (const rule without : rules)
                if (p.where.name == name)
                    searches.push_back({p.where, without});
    };
    in("three attempts", {rule::second_phase, rule::quorum_of_exact});
    in("a loss", {rule::floor_required});
    in("emptied twice", {rule::read_of_b, rule::counters_restored});
    in("a key vanishes, and a copy returns", {rule::raise_compares_marker, rule::raise_compares_owner});
    in("a clock jumps ahead", {rule::clock_compared});
    in("change, one master stays", {rule::change_waits, rule::left_out_retired, rule::move_quorum});
    return searches;
}

std::vector<proof> random_proofs()
{
    constexpr std::uint64_t walks = 2000;
    return {
        {many_faults("three masters", 3), walks},
        {many_faults("four masters", 4), walks},
        {many_faults("five masters", 5), walks},
        {vanishing(many_faults("three masters, keys vanish", 3)), walks},
        {vanishing(many_faults("five masters, keys vanish", 5)), walks},
        {power_cuts("three masters, power cuts, by clocks", 3), walks},
        {power_cuts("five masters, power cuts, by clocks", 5), walks},
        {with_hint_ahead(armed_at_once(power_cuts("three masters, armed at once", 3))), walks},
        {with_hint_ahead(armed_at_once(power_cuts("five masters, armed at once", 5))), walks},
        {jumps(many_faults("three masters, clocks jump", 3)), walks},
        {jumps(many_faults("five masters, clocks jump", 5)), walks},
        {jumps(power_cuts("three masters, clocks jump, power cuts", 3)), walks},
        {changes("change, one master stays", three, 0b11100), walks},
        {changes("change, another master stays", three, 0b11001), walks},
        {changes("change, same masters", three, three), walks},
        {changes("change, three to five", three, 0b11111), walks},
        {changes("change, five to three", 0b11111, three), walks},
        {changes("two changes, one goes back", three, 0b11001, three), walks},
        {changes("two changes, three lists", three, 0b11100, 0b11001), 16 * walks},
        {changes("two changes, lists overlap", three, 0b01011, 0b10101), 4 * walks},
    };
}

} // namespace model
