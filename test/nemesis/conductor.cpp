// SPDX-License-Identifier: BSL-1.0
// Real masters, real clients in processes of their own, and everything that may happen to them, round after round.
#include "beliefs.hpp"
#include "own_network.hpp"
#include "stage.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace redlock::nemesis
{

namespace
{

constexpr auto patience = 60s; // Whatever takes longer doesn't come.

struct settings
{
    std::chrono::seconds length{600};
    std::size_t grants = 0; // It continues until it has seen as many.
    std::uint64_t seed = std::random_device{}();
    std::chrono::milliseconds claim{0};
    std::optional<keeping> keys{}; // Of all rounds; empty: drawn.
    bool compares = true;          // The resource.
    bool own_network = false;
};

/// Over all rounds.
struct summary
{
    std::size_t rounds = 0;
    std::size_t grants = 0;
    std::size_t kept = 0;
    std::size_t losses = 0;
    std::size_t releases = 0;
    std::size_t pauses = 0;
    std::size_t double_holders = 0;
    std::size_t expected = 0; // Of these, where nothing was promised.
    std::size_t writes = 0;   // That the resource has accepted.
    std::size_t late = 0;     // Requests of clients that no longer held it.
    std::size_t refused = 0;
    instant longest_wait = 0; // For a resource, once nothing bad happened any more.
    std::map<std::string, std::size_t> faults{};
    std::vector<std::string> violations{};
};

scene draw_scene(chance& from, const settings& how)
{
    scene drawn;
    drawn.masters = std::array<std::size_t, 4>{1, 3, 3, 5}[from.below(4)];
    drawn.clients = 2 + from.below(3);
    drawn.resources = 1 + from.below(5);
    static constexpr std::array kinds{keeping::on_disk, keeping::on_disk, keeping::away,
                                      keeping::broken,  keeping::guarded, keeping::guarded_at_random};
    drawn.keys = how.keys.value_or(kinds[from.below(kinds.size())]);
    drawn.compares = how.compares;
    if (how.keys)
    {
        drawn.masters = 5;
        drawn.clients = 4;
    }
    drawn.own_network = how.own_network;
    drawn.claim = how.claim;
    if (how.claim > 0ms)
    {
        drawn.keys = keeping::on_disk; // If keys are lost, no violation is detected.
    }
    if (is_guarded(drawn.keys))
    {
        drawn.kept = draw_files(from);
    }
    else if (drawn.keys == keeping::on_disk)
    {
        drawn.kept = files::aof;
    }
    drawn.replicas = !is_lasting(drawn.keys) && from.below(2) == 0;
    return drawn;
}

void complain(summary& of, const char* about, const std::vector<std::string>& found)
{
    for (const std::string& each : found)
    {
        of.violations.push_back(fmt::format("round {}: {}: {}", of.rounds, about, each));
        fmt::print("{}\n", of.violations.back());
    }
}

void play(stage& on, chance& from, instant end)
{
    while (now() < end)
    {
        on.heal_what_is_due();
        if (from.below(10) == 0)
        {
            on.harm();
        }
        std::this_thread::sleep_for(20ms);
    }
}

/// Each resource can be had again, now that nothing bad happens any more.
void wait_for_all_resources(const stage& on, summary& of)
{
    const instant healed = now();
    const instant limit = healed + std::chrono::nanoseconds{patience}.count();
    std::map<std::string, instant> had;
    while (had.size() < on.what().resources && now() < limit)
    {
        std::this_thread::sleep_for(50ms);
        for (const diary& each : on.diaries())
        {
            for (const belief& one : each.leases)
            {
                if (one.from > healed)
                {
                    instant& first = had.try_emplace(one.resource, one.from).first->second;
                    first = std::min(first, one.from);
                }
            }
        }
    }
    for (const auto& [resource, from] : had)
    {
        of.longest_wait = std::max(of.longest_wait, from - healed);
    }
    if (had.size() < on.what().resources)
    {
        complain(of, "liveness", {fmt::format("only {} of {} resources", had.size(), on.what().resources)});
    }
}

/// Released keys no longer exist; the rest expires.
void look_at_keys(stage& on, const std::vector<diary>& all, summary& of)
{
    std::set<std::string> released;
    for (const diary& each : all)
    {
        for (const belief& one : each.leases)
        {
            if (one.released)
            {
                released.insert(one.owner);
            }
        }
    }
    const instant limit = now() + std::chrono::nanoseconds{patience}.count();
    std::vector<std::string> left = on.owners_on_a_quorum();
    for (const std::string& owner : left)
    {
        if (is_lasting(on.what().keys) && released.contains(owner))
        {
            complain(of, "released and still there", {owner});
        }
    }
    while (!left.empty() && now() < limit)
    {
        std::this_thread::sleep_for(50ms);
        left = on.owners_on_a_quorum();
    }
    complain(of, "it never lapses", left);
}

void look_at_resources(stage& on, summary& of)
{
    for (const std::vector<request>& log : on.requests())
    {
        complain(of, "write", wrong_writes(log));
        for (const request& one : log)
        {
            of.writes += one.accepted && one.written ? 1U : 0U;
            of.late += one.late ? 1U : 0U;
            of.refused += one.accepted ? 0U : 1U;
        }
    }
}

void count(const std::vector<diary>& all, summary& of)
{
    for (const diary& each : all)
    {
        of.pauses += each.pauses.size();
        of.grants += each.leases.size();
        for (const belief& one : each.leases)
        {
            of.kept += one.is_kept ? 1U : 0U;
            of.losses += one.lost != never ? 1U : 0U;
            of.releases += one.released ? 1U : 0U;
        }
    }
}

void play_round(chance& from, const settings& how, instant end, summary& of)
{
    ++of.rounds;
    const scene drawn = draw_scene(from, how);
    const std::size_t before = of.grants;
    stage on{drawn, from, of.faults};
    const instant drawn_end = now() + std::chrono::nanoseconds{from.between(5s, 15s)}.count();
    play(on, from, of.grants < how.grants ? drawn_end : std::min(end, drawn_end));
    on.heal();
    if (drawn.keys != keeping::broken && drawn.keys != keeping::guarded_at_random)
    {
        wait_for_all_resources(on, of);
    }
    complain(of, "a client", on.end_clients());
    const std::vector<diary> all = on.diaries();
    const std::vector<std::string> held_twice = overlaps(all);
    of.double_holders += held_twice.size();
    if (is_exclusive(drawn.keys))
    {
        complain(of, "held twice", held_twice);
        look_at_keys(on, all, of);
    }
    else
    {
        of.expected += held_twice.size();
    }
    if (is_guarded(drawn.keys))
    {
        complain(of, "token", wrong_tokens(all));
        look_at_resources(on, of);
    }
    complain(of, "told too late", late_losses(all));
    count(all, of);
    fmt::print(
        "round {}: {} masters, {}{}, {} clients, {} resources, {}: {} grants\n", of.rounds, drawn.masters,
        name_of(drawn.kept), drawn.replicas ? ", replicas" : "", drawn.clients, drawn.resources,
        name_of(drawn.keys), of.grants - before);
    std::fflush(stdout);
}

void print(const summary& of)
{
    fmt::print(
        "{} rounds, {} grants ({} kept), {} confirmed releases, {} losses told, {} pauses of clients\n",
        of.rounds, of.grants, of.kept, of.releases, of.losses, of.pauses);
    for (const auto& [name, times] : of.faults)
    {
        fmt::print("  {:<32}{:>6}\n", name, times);
    }
    fmt::print(
        "longest wait for a resource after the faults: {} ms\n"
        "resources that check tokens: {} writes accepted, {} requests known to be late, {} refused\n"
        "{} double holders, {} of them where keys were lost in plain mode\nviolations: {}\n",
        of.longest_wait / 1'000'000, of.writes, of.late, of.refused, of.double_holders, of.expected,
        of.violations.size());
}

settings read(std::span<char*> arguments)
{
    settings how;
    for (std::size_t at = 1; at < arguments.size(); ++at)
    {
        const std::string name = arguments[at];
        if (name == "--plain")
        {
            how.keys = keeping::lost;
            continue;
        }
        if (name == "--unchecked")
        {
            how.compares = false;
            continue;
        }
        if (++at == arguments.size())
        {
            throw std::invalid_argument{"no value, or unknown: " + name};
        }
        if (name == "--guarded")
        {
            how.keys =
                arguments[at] == std::string{"at-random"} ? keeping::guarded_at_random : keeping::guarded;
            continue;
        }
        const std::uint64_t value = std::strtoull(arguments[at], nullptr, 10);
        if (name == "--grants")
        {
            how.grants = value;
        }
        else if (name == "--seconds")
        {
            how.length = std::chrono::seconds{value};
        }
        else if (name == "--seed")
        {
            how.seed = value;
        }
        else if (name == "--claim")
        {
            how.claim = std::chrono::milliseconds{value};
        }
        else
        {
            throw std::invalid_argument{"unknown: " + name};
        }
    }
    return how;
}

} // namespace

int run(std::span<char*> arguments)
{
    settings how = read(arguments);
    fmt::print("seed {}\n", how.seed);
    const std::string refused = enter_own_network();
    how.own_network = refused.empty();
    if (!how.own_network)
    {
        fmt::print("no network namespace ({}): the network isn't unplugged, all else is done\n", refused);
    }
    chance from{how.seed};
    summary all;
    const instant end = now() + std::chrono::nanoseconds{how.length}.count();
    while (now() < end || (all.grants < how.grants && all.violations.empty()))
    {
        play_round(from, how, end, all);
    }
    // A late request is accepted as long as no newer token was shown, so it alone shows nothing.
    if (how.grants > 0 && how.keys && is_guarded(*how.keys) && how.compares && all.refused == 0)
    {
        complain(all, "write", {"none was refused, so nothing was shown about stale ones"});
    }
    print(all);
    return all.violations.empty() && all.grants > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace redlock::nemesis

int main(int count, char** values)
{
    try
    {
        return redlock::nemesis::run({values, static_cast<std::size_t>(count)});
    }
    catch (const std::exception& error)
    {
        fmt::print(stderr, "nemesis: {}\n", error.what());
        return 2;
    }
}
