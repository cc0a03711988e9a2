// SPDX-License-Identifier: BSL-1.0
// How long one client takes to acquire with other ways to lock that people use, beside redlock in the same round.
#include "peer_client.hpp"
#include "peer_servers.hpp"
#include "redlock_client.hpp"
#include "rounds.hpp"
#include "sections.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
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

// Not measured: it wakes up what lay still while others had their turn.
constexpr std::size_t pairs_to_wake_up = 100;
constexpr std::string_view what_the_ratio_is = "A ratio is peer to redlock: above 1 the peer takes longer to "
                                               "acquire, below 1 it makes fewer pairs a second.";
constexpr std::string_view on_one_cpu = "Node.js compiles and collects garbage on threads of its own: here "
                                        "they share the one CPU with the servers.";

/// What the rounds of a client gave.
struct peer_record
{
    std::vector<double> p50;
    std::vector<double> p99;
    std::vector<double> p999;
    std::vector<double> per_second;
    std::vector<std::chrono::nanoseconds> acquires; // Of all rounds.
    std::uint64_t failed = 0;
    std::uint64_t unconfirmed = 0;

    void add(const stretch& round)
    {
        const auto samples = sorted(round.acquires);
        p50.push_back(percentile_us(samples, 0.5));
        p99.push_back(percentile_us(samples, 0.99));
        p999.push_back(percentile_us(samples, 0.999));
        const double seconds = std::chrono::duration<double>{round.lasted}.count();
        per_second.push_back(static_cast<double>(round.acquires.size()) / seconds);
        acquires.insert(acquires.end(), samples.begin(), samples.end());
        failed += round.failed;
        unconfirmed += round.unconfirmed;
    }
};

/// Of the rounds that both had: a peer may have been given up before the last.
spread ratios(const std::vector<double>& of, const std::vector<double>& to)
{
    std::vector<double> values;
    for (std::size_t round = 0; round < of.size(); ++round)
    {
        values.push_back(of[round] / to[round]);
    }
    return spread_of(std::move(values));
}

stretch run_round(client& one, std::size_t pairs)
{
    one.run({pairs_to_wake_up});
    return one.run({pairs});
}

/// Those that can be measured here.
class peer_section
{
  public:
    peer_section(std::span<const test::server> masters, const options& asked, progress& shown)
        : asked_{asked}, shown_{shown}, redlock_{config_for(masters)}
    {
        std::vector<std::string> ports;
        for (const test::server& master : masters)
        {
            ports.push_back(std::to_string(master.port()));
        }
        add("node-redlock", [&] { return ports; });
        add("redis-semaphore", [&] { return ports; });
        add("etcd", [&] { return etcd_.emplace().address(); });
        add("postgresql", [&] { return postgres_.emplace().address(); });
    }

    void measure()
    {
        shown_.show("redlock beside its peers: warming up");
        redlock_.run({asked_.pairs});
        for_each_peer("while it warmed up", [&](peer& each) { each.driver->run({asked_.pairs}); });
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            const std::string which = fmt::format("round {} of {}", round + 1, asked_.rounds);
            shown_.show(fmt::format("redlock beside its peers: {}", which));
            redlocks_.add(run_round(redlock_, asked_.pairs));
            for_each_peer(
                fmt::format("in {}", which),
                [&](peer& each)
                {
                    shown_.show(fmt::format("{} beside redlock: {}", each.name, which));
                    each.rounds.add(run_round(*each.driver, asked_.pairs));
                });
        }
    }

    figure_group result()
    {
        figure_group group{"Other ways to lock, one client, one lock after the other", "redlock", {}};
        group.measured = "peer";
        plot latencies = distribution_plot("peers", "Acquire latency of one client", {});
        latencies.lines.push_back(distribution("redlock", redlocks_.acquires));
        for (const peer& each : peers_)
        {
            if (!each.rounds.p50.empty())
            {
                add_figures(each, group.figures);
                latencies.lines.push_back(distribution(each.name, each.rounds.acquires));
            }
        }
        group.plots.push_back(std::move(latencies));
        group.notes = std::move(notes_);
        group.notes.emplace_back(what_the_ratio_is);
        group.notes.emplace_back(on_one_cpu);
        return group;
    }

  private:
    struct peer
    {
        std::string name;
        std::unique_ptr<peer_client> driver; // None once it was given up.
        peer_record rounds{};
    };

    /// Tells why when it isn't there. `start` gives what its driver has to know.
    void add(const std::string& kind, const std::function<std::vector<std::string>()>& start)
    {
        shown_.show(fmt::format("starting {}", kind));
        try
        {
            std::vector<std::string> arguments = start();
            arguments.insert(arguments.begin(), kind);
            auto driver = std::make_unique<peer_client>(arguments);
            notes_.push_back(fmt::format("{}: {}", driver->name(), driver->about()));
            peers_.push_back({driver->name(), std::move(driver)});
        }
        catch (const std::exception& problem)
        {
            complain(fmt::format("left out: {}: {}", kind, problem.what()));
        }
    }

    void for_each_peer(const std::string& when, const std::function<void(peer&)>& work)
    {
        for (peer& each : peers_)
        {
            if (!each.driver)
            {
                continue;
            }
            try
            {
                work(each);
            }
            catch (const std::exception& problem)
            {
                each.driver.reset();
                complain(fmt::format("{} was given up {}: {}", each.name, when, problem.what()));
            }
        }
    }

    /// Where it can't be overlooked.
    void complain(std::string note)
    {
        shown_.tell(note);
        notes_.push_back(std::move(note));
    }

    void add_figures(const peer& one, std::vector<figure>& out) const
    {
        const auto add = [&](std::string_view what, std::string unit, double redlock, double measured,
                             std::optional<spread> ratio) {
            out.push_back(
                {fmt::format("{}: {}", one.name, what), std::move(unit), redlock, measured, ratio, {}});
        };
        const auto redlock_samples = sorted(redlocks_.acquires);
        const auto samples = sorted(one.rounds.acquires);
        const auto latency =
            [&](std::string_view what, double fraction, std::vector<double> peer_record::*rounds)
        {
            add(what, "us", percentile_us(redlock_samples, fraction), percentile_us(samples, fraction),
                ratios(one.rounds.*rounds, redlocks_.*rounds));
        };
        latency("acquire p50", 0.5, &peer_record::p50);
        latency("acquire p99", 0.99, &peer_record::p99);
        latency("acquire p99.9", 0.999, &peer_record::p999);
        add("pairs", "/s", spread_of(redlocks_.per_second).median, spread_of(one.rounds.per_second).median,
            ratios(one.rounds.per_second, redlocks_.per_second));
        const auto count = [&](std::string_view what, std::uint64_t redlock, std::uint64_t measured)
        { add(what, "", static_cast<double>(redlock), static_cast<double>(measured), {}); };
        count("pairs measured", redlocks_.acquires.size(), samples.size());
        count("acquires failed", redlocks_.failed, one.rounds.failed);
        count("releases failed", redlocks_.unconfirmed, one.rounds.unconfirmed);
    }

    const options& asked_;
    progress& shown_;
    redlock_client redlock_;
    peer_record redlocks_;
    // The servers outlive those who are connected to them.
    std::optional<etcd_server> etcd_;
    std::optional<postgres_server> postgres_;
    std::vector<peer> peers_;
    std::vector<std::string> notes_;
};

} // namespace

figure_group measure_peers(std::span<test::server> masters, const options& asked, progress& shown)
{
    peer_section section{masters, asked, shown};
    section.measure();
    return section.result();
}

} // namespace redlock::bench
