// SPDX-License-Identifier: BSL-1.0
// How long one client takes to acquire with other ways to lock that people use, beside redlock in the same round.
#include "harness/peer_client.hpp"
#include "harness/peer_servers.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"
#include "sections/sections.hpp"

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
constexpr std::string_view what_they_promise =
    "They don't promise the same: redlock, node-redlock, redis-semaphore and redis++ hold a majority of "
    "independent masters for a ttl; etcd is a single node here, so that no change waits for a network; "
    "PostgreSQL is a single server, whose lock ends with the connection.";
constexpr std::string_view what_node_takes =
    "Node.js compiles and collects garbage on threads of its own: here "
    "they share the one CPU with the servers.";

stretch run_round(client& one, std::size_t pairs)
{
    one.run({pairs_to_wake_up});
    return measured({one, {}}, {pairs});
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
        add("redis++", [&] { return ports; });
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
            redlocks_.push_back(run_round(redlock_, asked_.pairs));
            for_each_peer(
                fmt::format("in {}", which),
                [&](peer& each)
                {
                    shown_.show(fmt::format("{} beside redlock: {}", each.name, which));
                    each.seen.push_back(run_round(*each.driver, asked_.pairs));
                });
        }
    }

    figure_group result()
    {
        figure_group group{"Other ways to lock, one client, one lock after the other", "redlock", {}};
        group.measured = "peer";
        plot latencies = distribution_plot("peers", "Acquire latency of one client", {});
        latencies.lines.push_back(distribution("redlock", redlocks_));
        for (const peer& each : peers_)
        {
            if (!each.seen.empty())
            {
                add_figures(each, group.figures);
                latencies.lines.push_back(distribution(each.name, each.seen));
            }
        }
        group.plots.push_back(std::move(latencies));
        group.notes = std::move(notes_);
        group.notes.emplace_back(what_the_ratio_is);
        group.notes.emplace_back(what_they_promise);
        group.notes.emplace_back(what_node_takes);
        return group;
    }

  private:
    struct peer
    {
        std::string name;
        std::unique_ptr<peer_client> driver; // None once it was given up.
        rounds seen{};
    };

    /// Tells why when it isn't there. `start` gives what its driver has to know.
    void add(const std::string& kind, const std::function<std::vector<std::string>()>& start)
    {
        shown_.show(fmt::format("starting {}", kind));
        try
        {
            auto driver = std::make_unique<peer_client>(kind, start());
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
        // Of the rounds that both had: a peer may have been given up before the last.
        const rounds redlocks(
            redlocks_.begin(), redlocks_.begin() + static_cast<std::ptrdiff_t>(one.seen.size()));
        const auto total = [&](std::string name, std::uint64_t stretch::*count) -> figure
        { return {std::move(name), "", total_of(count, redlocks), total_of(count, one.seen), {}, {}}; };
        bench::add(
            {compared(acquire_p50, redlocks, one.seen), compared(acquire_p99, redlocks, one.seen),
             compared(acquire_p999, redlocks, one.seen), compared(pairs_per_second, redlocks, one.seen),
             total("acquires failed", &stretch::failed), total("releases failed", &stretch::unconfirmed)},
            one.name + ": ", "", out);
    }

    const options& asked_;
    progress& shown_;
    redlock_client redlock_;
    rounds redlocks_;
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
