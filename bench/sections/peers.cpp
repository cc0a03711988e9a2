// SPDX-License-Identifier: BSL-1.0
// Acquire latency of other lock libraries and servers, compared with redlock in the same round.
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

// Run before each measurement, because a client is idle while the others are measured.
constexpr std::size_t warm_up_pairs = 100;
constexpr std::string_view ratio_note =
    "The ratio is peer to redlock. Above 1, the peer takes longer to acquire; below "
    "1, it makes fewer pairs per second.";
constexpr std::string_view guarantees_note =
    "The guarantees differ. redlock, node-redlock, redis-semaphore and redis++ hold a "
    "majority of independent masters for a ttl. etcd is a single node here, so no "
    "change waits for a network. PostgreSQL is a single server, whose lock ends with "
    "the connection.";
constexpr std::string_view node_note =
    "Node.js compiles and collects garbage on separate threads, which share the one "
    "CPU with the servers here.";

run_record run_round(client& one, std::size_t pairs)
{
    one.run({warm_up_pairs});
    return run_measured({one, {}}, {pairs});
}

/// redlock and the peers that are installed.
class peer_section
{
  public:
    peer_section(std::span<const test::server> masters, const options& settings, progress& status)
        : settings_{settings}, status_{status}, redlock_{config_for(masters)}
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
        status_.show("peers: warming up");
        redlock_.run({settings_.pairs});
        for_each_peer("during warm-up", [&](peer& each) { each.driver->run({settings_.pairs}); });
        for (std::size_t round = 0; round < settings_.rounds; ++round)
        {
            const std::string which = fmt::format("round {} of {}", round + 1, settings_.rounds);
            status_.show(fmt::format("peers: redlock, {}", which));
            redlocks_.push_back(run_round(redlock_, settings_.pairs));
            for_each_peer(
                fmt::format("in {}", which),
                [&](peer& each)
                {
                    status_.show(fmt::format("peers: {}, {}", each.name, which));
                    each.finished.push_back(run_round(*each.driver, settings_.pairs));
                });
        }
    }

    figure_group result()
    {
        figure_group group{"Other lock libraries and servers, one client, one lock at a time", "redlock", {}};
        group.measured = "peer";
        plot latencies = distribution_plot("peers", "Acquire latency of one client", {});
        latencies.lines.push_back(distribution("redlock", redlocks_));
        for (const peer& each : peers_)
        {
            if (!each.finished.empty())
            {
                add_figures(each, group.figures);
                latencies.lines.push_back(distribution(each.name, each.finished));
            }
        }
        group.plots.push_back(std::move(latencies));
        group.notes = std::move(notes_);
        group.notes.emplace_back(ratio_note);
        group.notes.emplace_back(guarantees_note);
        group.notes.emplace_back(node_note);
        return group;
    }

  private:
    struct peer
    {
        std::string name;
        std::unique_ptr<peer_client> driver; // Null after a failure.
        rounds finished{};
    };

    /// Starts a peer, or adds a note with the reason why it is skipped. `start` returns the arguments of its driver.
    void add(const std::string& kind, const std::function<std::vector<std::string>()>& start)
    {
        status_.show(fmt::format("starting {}", kind));
        try
        {
            auto driver = std::make_unique<peer_client>(kind, start());
            notes_.push_back(fmt::format("{}: {}", driver->name(), driver->description()));
            peers_.push_back({driver->name(), std::move(driver)});
        }
        catch (const std::exception& problem)
        {
            add_warning(fmt::format("{} is left out: {}", kind, problem.what()));
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
                add_warning(fmt::format(
                    "{} failed {} and is left out from then on: {}", each.name, when, problem.what()));
            }
        }
    }

    /// Reports a problem on stderr and in the notes.
    void add_warning(std::string note)
    {
        status_.print_line(note);
        notes_.push_back(std::move(note));
    }

    void add_figures(const peer& one, std::vector<figure>& out) const
    {
        // Only the rounds that both completed.
        const rounds redlocks(
            redlocks_.begin(), redlocks_.begin() + static_cast<std::ptrdiff_t>(one.finished.size()));
        const auto total = [&](std::string name, std::uint64_t run_record::*count) -> figure
        { return {std::move(name), "", total_of(count, redlocks), total_of(count, one.finished), {}, {}}; };
        bench::add(
            {compared(acquire_p50, redlocks, one.finished), compared(acquire_p99, redlocks, one.finished),
             compared(acquire_p999, redlocks, one.finished),
             compared(pairs_per_second, redlocks, one.finished),
             total("acquires failed", &run_record::failed),
             total("releases failed", &run_record::unconfirmed)},
            one.name + ": ", "", out);
    }

    const options& settings_;
    progress& status_;
    redlock_client redlock_;
    rounds redlocks_;
    // Declared before the peers, so that the servers outlive their clients.
    std::optional<etcd_server> etcd_;
    std::optional<postgres_server> postgres_;
    std::vector<peer> peers_;
    std::vector<std::string> notes_;
};

} // namespace

figure_group measure_peers(std::span<test::server> masters, const options& settings, progress& status)
{
    peer_section section{masters, settings, status};
    section.measure();
    return section.result();
}

} // namespace redlock::bench
