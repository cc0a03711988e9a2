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
    std::uint64_t seed = std::random_device{}();
    std::chrono::milliseconds claim{0};
    std::optional<keeping> keys{}; // Of all rounds; empty: drawn.
    bool own_network = false;
};

/// Over all rounds.
struct summary
{
    std::size_t rounds = 0;
    std::size_t acquisitions = 0;
    std::size_t kept = 0;
    std::size_t losses = 0;
    std::size_t releases = 0;
    std::size_t pauses = 0;
    std::size_t double_holds = 0; // Where nothing was promised.
    instant longest_wait = 0;     // For a resource, once nothing bad happened any more.
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

void play(stage& on, chance& from, instant end, summary& of)
{
    while (now() < end)
    {
        on.heal_what_is_due();
        if (from.below(10) == 0)
        {
            on.harm(of.faults);
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
        if (released.contains(owner))
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

void count(const std::vector<diary>& all, summary& of)
{
    for (const diary& each : all)
    {
        of.pauses += each.pauses.size();
        of.acquisitions += each.leases.size();
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
    const std::size_t before = of.acquisitions;
    stage on{drawn, from};
    play(on, from, std::min(end, now() + std::chrono::nanoseconds{from.between(5s, 15s)}.count()), of);
    on.heal();
    if (drawn.keys != keeping::broken && drawn.keys != keeping::guarded_at_random)
    {
        wait_for_all_resources(on, of);
    }
    if (!on.end_clients())
    {
        complain(of, "a client", {"doesn't end"});
    }
    const std::vector<diary> all = on.diaries();
    if (drawn.keys == keeping::broken)
    {
        of.double_holds += overlaps(all).size();
    }
    else
    {
        complain(of, "held twice", overlaps(all));
        if (is_guarded(drawn.keys))
        {
            complain(of, "token", wrong_tokens(all));
        }
        look_at_keys(on, all, of);
    }
    complain(of, "told too late", late_losses(all));
    count(all, of);
    fmt::print(
        "round {}: {} masters, {} clients, {} resources, {}: {} acquisitions\n", of.rounds, drawn.masters,
        drawn.clients, drawn.resources, name_of(drawn.keys), of.acquisitions - before);
    std::fflush(stdout);
}

void print(const summary& of)
{
    fmt::print(
        "{} rounds, {} acquisitions ({} kept), {} confirmed releases, {} losses told, {} pauses of clients\n",
        of.rounds, of.acquisitions, of.kept, of.releases, of.losses, of.pauses);
    for (const auto& [name, times] : of.faults)
    {
        fmt::print("  {:<22}{:>6}\n", name, times);
    }
    fmt::print(
        "longest wait for a resource after the faults: {} ms\n"
        "held twice where keys were lost on purpose: {}\nviolations: {}\n",
        of.longest_wait / 1'000'000, of.double_holds, of.violations.size());
}

settings read(std::span<char*> arguments)
{
    settings how;
    for (std::size_t at = 1; at + 1 < arguments.size(); at += 2)
    {
        const std::string name = arguments[at];
        if (name == "--guarded")
        {
            how.keys =
                arguments[at + 1] == std::string{"at-random"} ? keeping::guarded_at_random : keeping::guarded;
            continue;
        }
        const std::uint64_t value = std::strtoull(arguments[at + 1], nullptr, 10);
        if (name == "--seconds")
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
    while (now() < end)
    {
        play_round(from, how, end, all);
    }
    print(all);
    return all.violations.empty() && all.acquisitions > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
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
