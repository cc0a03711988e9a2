// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource: the time from a release to the next grant, what it costs, and how evenly the
// grants are distributed. The references are clients that wait as in the textbook, and a client that is alone.
#include "harness/contention_rounds.hpp"
#include "harness/lock_contenders.hpp"
#include "harness/masters.hpp"
#include "harness/peer_servers.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"
#include "harness/server_contenders.hpp"
#include "harness/statistics.hpp"
#include "sections/contention_tables.hpp"
#include "sections/sections.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

using namespace std::chrono_literals;

/// On average a pause is half as long as a hold, so that a client is waiting nearly all the time.
struct hold_times
{
    std::string_view name;
    time_range hold;
    time_range pause;

    bool operator==(const hold_times& other) const { return name == other.name; }
};

constexpr hold_times no_hold{"0 ms", {0us, 0us}, {0us, 0us}};
constexpr hold_times short_hold{"0.2 to 0.4 ms", {200us, 400us}, {0us, 300us}};
constexpr hold_times long_hold{"3 to 7 ms", {3000us, 7000us}, {0us, 5000us}};
constexpr std::array<std::size_t, 4> client_counts{2, 10, 100, 1000};
constexpr std::size_t many_clients = 1000;
constexpr std::chrono::milliseconds distance = 1ms;
constexpr std::size_t peer_rounds = 1;
// With 1000 clients, a round of PostgreSQL did not end within a minute.
constexpr std::size_t max_peer_clients = 100;
// As multiples of a lone client's acquire. On loopback, most of an acquire isn't spent in the network.
constexpr double max_hand_over = 3.5;
constexpr double max_distant_hand_over = 2.5;

/// A load with its name in the tables. The measured time is long enough for all clients to hold the resource once.
contention_scenario scenario_of(std::size_t clients, const hold_times& times, const options& settings)
{
    constexpr std::chrono::microseconds usual_hand_over = 500us;
    constexpr std::size_t max_rounds = 5;
    const auto count = static_cast<std::chrono::microseconds::rep>(clients);
    const auto cycle = count * (times.hold.mean() + usual_hand_over);
    const auto needed = std::chrono::ceil<std::chrono::milliseconds>(cycle * 5 / 4);
    const contention_load load{clients, times.hold,          times.pause,
                               false,   200ms + count * 1ms, std::max(settings.contend_for, needed)};
    const std::size_t rounds =
        clients == many_clients ? 1 : std::min(settings.rounds, settings.quick ? 2 : max_rounds);
    return {fmt::format("{} clients", clients), load, rounds};
}

/// A client that is alone, and finds the masters as idle as the next holder does.
contention_load alone_with_pauses(contention_load load)
{
    load.clients = 1;
    load.pause = load.hold;
    load.start = 50ms;
    load.measure = 300ms;
    return load;
}

contention_load alone_without_pauses(contention_load load)
{
    load = alone_with_pauses(load);
    load.greedy = true;
    load.measure = 150ms;
    return load;
}

contention_load unchanged(contention_load load)
{
    return load;
}

/// Returns what the masters have done so far. A round sends one SET to each master, but the queue master makes one more
/// when a question is granted, and makes it instead if the round contains the question. So the median master shows the
/// number of rounds.
server_work work_of(std::span<test::server> masters)
{
    std::vector<double> sets;
    for (std::size_t at = 0; at < masters.size(); ++at)
    {
        sets.push_back(commands_run(masters.subspan(at, 1), "set"));
    }
    const double commands = commands_run(masters, "set") + commands_run(masters, "evalsha");
    return {spread_of(sets).median, commands, cpu_of(masters)};
}

/// The order of the contestants. A table may have the first ones only.
enum contestant_position : std::size_t
{
    redlock_clients,
    alone,
    textbook,
    alone_at_full_rate,
    first_peer
};

std::vector<contestant> contestants_of(const config& settings, std::span<test::server> masters)
{
    const auto make = [&](std::string name, auto kind, contention_load (*load)(contention_load)) -> contestant
    {
        return {
            std::move(name), [=](std::string resource) { return kind(settings, std::move(resource)); },
            [=] { return work_of(masters); }, load};
    };
    return {
        make("redlock", library_contenders, unchanged), make("alone", library_contenders, alone_with_pauses),
        make("textbook", textbook_contenders, unchanged),
        make("alone at full rate", library_contenders, alone_without_pauses)};
}

void add_row(std::vector<figure> figures, const contention_scenario& scenario, figure_group& to)
{
    add(std::move(figures), scenario.name + ": ", "", to.figures);
}

/// Curves over the number of clients, for one range of hold times.
class contention_growth
{
  public:
    void add(std::size_t clients, const std::vector<contention_rounds>& rounds)
    {
        constexpr double us_per_ms = 1000;
        const auto at = static_cast<double>(clients);
        hand_over_[0].points.emplace_back(at, value_of(hand_over_p50, rounds[textbook]) / us_per_ms);
        hand_over_[1].points.emplace_back(at, value_of(hand_over_p99, rounds[textbook]) / us_per_ms);
        hand_over_[2].points.emplace_back(at, value_of(hand_over_p50, rounds[redlock_clients]) / us_per_ms);
        hand_over_[3].points.emplace_back(at, value_of(hand_over_p99, rounds[redlock_clients]) / us_per_ms);
        commands_[0].points.emplace_back(at, value_of(commands_per_grant, rounds[textbook]));
        commands_[1].points.emplace_back(at, value_of(commands_per_grant, rounds[redlock_clients]));
        waits_[0].points.emplace_back(at, value_of(longest_wait, rounds[textbook]));
        waits_[1].points.emplace_back(at, value_of(longest_wait, rounds[redlock_clients]));
    }

    std::vector<plot> plots() &&
    {
        const std::string clients = "competing clients";
        return {
            {"contention_hand_over", "From a release to the next grant", clients, "ms", true, true,
             std::move(hand_over_)},
            {"contention_commands", "Commands per grant, to all masters", clients, "commands", true, true,
             std::move(commands_)},
            {"contention_wait", "Longest wait", clients, "ms", true, true, std::move(waits_)}};
    }

  private:
    std::vector<series> hand_over_{
        {"textbook, p50", {}}, {"textbook, p99", {}}, {"redlock, p50", {}}, {"redlock, p99", {}}};
    std::vector<series> commands_{{"textbook", {}}, {"redlock", {}}};
    std::vector<series> waits_{{"textbook", {}}, {"redlock", {}}};
};

/// The tables of one range of hold times.
struct hold_tables
{
    explicit hold_tables(const hold_times& times)
        : costs{fmt::format("Clients that compete for one resource and hold it for {}", times.name), "textbook", {}},
          lone{
              fmt::format("The same, compared with a client that is alone, holds of {}", times.name),
              "alone",
              {}},
          peers{fmt::format("The same with other servers, holds of {}", times.name), "redlock", {}}
    {
        costs.notes.emplace_back(start_note);
        lone.notes.emplace_back(alone_note);
        peers.measured = "peer";
        peers.notes.emplace_back(peers_note);
    }

    figure_group costs;
    figure_group lone;
    figure_group peers;
};

/// Measures, and collects the tables.
class contention_section
{
  public:
    contention_section(std::span<test::server> masters, const options& settings, progress& status)
        : masters_{masters},
          settings_{settings},
          status_{status},
          contestants_{contestants_of(config_with_long_timeout(masters), masters)}
    {
        if (!settings.quick)
        {
            add_peer("etcd", [this] { return etcd(); });
            add_peer("PostgreSQL", [this] { return postgresql(); });
        }
    }

    void measure(const hold_times& times)
    {
        hold_tables tables{times};
        contention_growth growth;
        for (const std::size_t clients : selected(client_counts))
        {
            const contention_scenario scenario = scenario_of(clients, times, settings_);
            const auto count = clients <= max_peer_clients ? contestants_.size() : first_peer;
            const std::span chosen{contestants_.data(), count};
            const auto rounds = run(chosen, scenario, fmt::format("holds of {}", times.name));
            if (!rounds.empty())
            {
                add_to(tables, scenario, row_of(clients, times), rounds);
                growth.add(clients, rounds);
            }
        }
        if (times == long_hold)
        {
            tables.costs.plots = std::move(growth).plots();
        }
        groups_.push_back(std::move(tables.costs));
        groups_.push_back(std::move(tables.lone));
        if (!tables.peers.figures.empty())
        {
            groups_.push_back(std::move(tables.peers));
        }
    }

    /// One of two clients doesn't pause.
    void measure_greedy()
    {
        std::vector<contestant> few = contestants_of(config_with_long_timeout(masters_), masters_);
        contention_scenario scenario = scenario_of(2, long_hold, settings_);
        scenario.load.greedy = true;
        scenario.name = "2 clients, 1 greedy";
        few.resize(alone_at_full_rate);
        const auto rounds = run(few, scenario, "one greedy client");
        if (rounds.empty())
        {
            return;
        }
        figure_group table{
            fmt::format("One client of two doesn't pause, holds of {}", long_hold.name), "textbook", {}};
        add_row({greedy_share(rounds[textbook], rounds[redlock_clients])}, scenario, table);
        add_row({compared(longest_wait, rounds[textbook], rounds[redlock_clients])}, scenario, table);
        groups_.push_back(std::move(table));
    }

    void measure_distant()
    {
        status_.show("contention: starting proxies");
        proxied_masters distant{masters_};
        config options = distant.options();
        options.node_timeout = 1s;
        std::vector<contestant> few = contestants_of(options, masters_);
        few.resize(textbook);
        distant.set_round_trip(distance);
        figure_group table{
            fmt::format("The same with masters {} ms away, holds of {}", distance / 1ms, long_hold.name),
            "alone",
            {}};
        for (const std::size_t clients : {std::size_t{2}, std::size_t{10}, std::size_t{100}})
        {
            const contention_scenario scenario = scenario_of(clients, long_hold, settings_);
            const auto rounds = run(few, scenario, "distant masters");
            if (rounds.empty())
            {
                continue;
            }
            contention_row row = row_of(clients, long_hold);
            row.max_hand_over = max_distant_hand_over;
            add_row(against_alone(rounds[alone], rounds[redlock_clients], row), scenario, table);
        }
        table.notes.emplace_back(alone_note);
        groups_.push_back(std::move(table));
    }

    /// Masters that write each change to disk before they confirm it.
    void measure_synced()
    {
        status_.show("contention: starting masters with appendfsync always");
        std::vector<test::server> synced = test::start_servers(
            masters_.size(),
            {.program = settings_.server, .settings = {"--appendonly", "yes", "--appendfsync", "always"}});
        std::vector<contestant> few = contestants_of(config_with_long_timeout(synced), synced);
        few.resize(alone_at_full_rate);
        figure_group table{
            fmt::format("Masters with appendfsync always, holds of {}", long_hold.name), "textbook", {}};
        for (const std::size_t clients : selected(std::array{std::size_t{100}, many_clients}))
        {
            contention_scenario scenario = scenario_of(clients, long_hold, settings_);
            if (clients != many_clients) // Otherwise a cycle of all clients would take too long.
            {
                scenario.load.measure *= 2;
            }
            const auto rounds = run(few, scenario, "appendfsync always");
            if (rounds.empty())
            {
                continue;
            }
            const contention_rounds& measured = rounds[redlock_clients];
            add_row(contention_costs(rounds[textbook], measured, {clients}), scenario, table);
            add_row(contention_fairness(rounds[textbook], measured), scenario, table);
        }
        groups_.push_back(std::move(table));
    }

    /// Returns the first table, with the others as related ones.
    figure_group result() &&
    {
        figure_group first = std::move(groups_.front());
        first.notes.insert(first.notes.end(), notes_.begin(), notes_.end());
        first.related.assign(
            std::make_move_iterator(groups_.begin() + 1), std::make_move_iterator(groups_.end()));
        return first;
    }

  private:
    /// A quick run leaves out the rows with many clients, which take longest.
    std::vector<std::size_t> selected(std::span<const std::size_t> counts) const
    {
        std::vector<std::size_t> out{counts.begin(), counts.end()};
        std::erase_if(
            out, [this](std::size_t clients) { return settings_.quick && clients == many_clients; });
        return out;
    }

    contention_row row_of(std::size_t clients, const hold_times& times) const
    {
        const bool judged = times == long_hold && clients <= 100;
        return {clients,       judged,         judged && clients == 100, times == short_hold && clients == 2,
                max_hand_over, masters_.size()};
    }

    /// Returns nothing if a client of the library failed: the row is left out. A peer that failed is left out from then
    /// on.
    std::vector<contention_rounds>
    run(std::span<contestant> contestants, const contention_scenario& scenario, std::string_view what)
    {
        auto rounds = run_alternately(contestants, scenario, status_, fmt::format("contention, {}", what));
        for (std::size_t at = 0; at < contestants.size(); ++at)
        {
            const auto failure = std::exchange(contestants[at].failure, std::nullopt);
            if (!failure)
            {
                continue;
            }
            add_warning(fmt::format("{}: {}", what, *failure));
            if (at < first_peer)
            {
                rounds.clear();
            }
            else
            {
                contestants[at].max_rounds = 0;
            }
        }
        return rounds;
    }

    void add_to(
        hold_tables& tables, const contention_scenario& scenario, const contention_row& row,
        const std::vector<contention_rounds>& rounds)
    {
        const contention_rounds& measured = rounds[redlock_clients];
        add_row(contention_costs(rounds[textbook], measured, row), scenario, tables.costs);
        add_row(contention_fairness(rounds[textbook], measured), scenario, tables.costs);
        add_row(against_alone(rounds[alone], measured, row), scenario, tables.lone);
        add_row({against_full_rate(rounds[alone_at_full_rate], measured, row)}, scenario, tables.lone);
        for (std::size_t at = first_peer; at < rounds.size(); ++at)
        {
            if (!rounds[at].empty())
            {
                const std::string prefix = fmt::format("{}: {}, ", scenario.name, contestants_[at].name);
                add(peer_contention(measured, rounds[at]), prefix, "", tables.peers.figures);
            }
        }
    }

    /// Adds a peer, or a note with the reason why it is left out.
    void add_peer(std::string_view name, const std::function<contestant()>& start)
    {
        status_.show(fmt::format("contention: starting {}", name));
        try
        {
            contestants_.push_back(start());
        }
        catch (const std::exception& problem)
        {
            add_warning(fmt::format("{} is left out: {}", name, problem.what()));
        }
    }

    contestant etcd()
    {
        etcd_ = std::make_unique<etcd_server>();
        return {
            "etcd", [this](const std::string&) { return etcd_contenders(etcd_->port()); },
            [this] {
                return server_work{0, 0, etcd_->cpu()};
            },
            unchanged, peer_rounds};
    }

    contestant postgresql()
    {
        postgres_ = std::make_unique<postgres_server>(max_peer_clients + 10);
        return {
            "PostgreSQL",
            [this](const std::string&)
            { return postgres_contenders(postgres_->port(), postgres_server::user, postgres_->password()); },
            [this] {
                return server_work{0, 0, postgres_->cpu()};
            },
            unchanged, peer_rounds};
    }

    void add_warning(std::string note)
    {
        status_.print_line(note);
        notes_.push_back(std::move(note));
    }

    std::span<test::server> masters_;
    const options& settings_;
    progress& status_;
    std::unique_ptr<etcd_server> etcd_;
    std::unique_ptr<postgres_server> postgres_;
    std::vector<contestant> contestants_;
    std::vector<figure_group> groups_;
    std::vector<std::string> notes_;
};

} // namespace

figure_group measure_contention(std::span<test::server> masters, const options& settings, progress& status)
{
    contention_section section{masters, settings, status};
    for (const hold_times& times : {long_hold, short_hold, no_hold})
    {
        section.measure(times);
    }
    section.measure_greedy();
    section.measure_distant();
    section.measure_synced();
    return std::move(section).result();
}

} // namespace redlock::bench
