// SPDX-License-Identifier: BSL-1.0
// How long an acquire takes while a minority of the masters is out of order, beside what it takes when none
// is.
#include "sections.hpp"

#include "proxied_masters.hpp"
#include "redlock_client.hpp"

#include <chrono>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

// Less than dead_after: so long at least the connections to stopped masters stay open.
constexpr std::chrono::milliseconds while_connected{800};
constexpr std::size_t most_faulty = 2;
constexpr std::chrono::milliseconds slow_by{5};

/// The p50 of one kind of round, beside the healthy round before it.
struct comparison
{
    std::vector<double> healthy;
    std::vector<double> faulty;

    void add(double healthy_us, double faulty_us)
    {
        healthy.push_back(healthy_us);
        faulty.push_back(faulty_us);
    }

    figure result(std::string name) const
    {
        const double reference = spread_of(healthy).median;
        const double measured = spread_of(faulty).median;
        return {std::move(name), "us", reference, measured, ratios(faulty, healthy), 1.1};
    }
};

class fault_section
{
  public:
    fault_section(
        std::span<test::server> masters, const config& to_reach_them, const options& asked, progress& shown)
        : masters_{masters}, asked_{asked}, shown_{shown}, client_{to_reach_them}
    {
        client_.await_unconnected(0);
    }

    /// SIGSTOP: first while their connections are open, then once the client has given them up.
    void hang(std::size_t count, std::vector<figure>& out)
    {
        comparison connected;
        comparison given_up;
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "hung", round);
            const double healthy = healthy_p50();
            for (test::server& master : masters_.first(count))
            {
                master.stop();
            }
            connected.add(healthy, p50(while_connected));
            client_.await_unconnected(count);
            given_up.add(healthy, p50());
            for (test::server& master : masters_.first(count))
            {
                master.resume();
            }
            client_.await_unconnected(0);
        }
        out.push_back(connected.result(fmt::format("acquire p50, {} hung", count)));
        out.push_back(given_up.result(fmt::format("acquire p50, {} hung and given up", count)));
    }

    /// SIGKILL.
    void kill(std::size_t count, std::vector<figure>& out)
    {
        comparison dead;
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "dead", round);
            const double healthy = healthy_p50();
            for (test::server& master : masters_.first(count))
            {
                master.kill();
            }
            client_.await_unconnected(count);
            dead.add(healthy, p50());
            for (test::server& master : masters_.first(count))
            {
                master.restart();
            }
            client_.await_unconnected(0);
        }
        out.push_back(dead.result(fmt::format("acquire p50, {} dead", count)));
    }

    /// They answer late, but in time.
    void slow_down(proxied_masters& distant, std::size_t count, std::vector<figure>& out)
    {
        comparison slow;
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "slow", round);
            const double healthy = healthy_p50();
            distant.set_delay(slow_by, count);
            slow.add(healthy, p50());
            distant.set_delay({}, count);
        }
        out.push_back(slow.result(fmt::format("acquire p50, {} slow by {} ms", count, slow_by.count())));
    }

  private:
    void show(std::size_t count, std::string_view how, std::size_t round)
    {
        shown_.show(fmt::format(
            "{} of {} {}: round {} of {}", count, masters_.size(), how, round + 1, asked_.rounds));
    }

    double p50(std::chrono::nanoseconds at_most = std::chrono::minutes{5})
    {
        const work what{asked_.pairs, at_most};
        return percentile_us(sorted(client_.run(what).acquires), 0.5);
    }

    double healthy_p50()
    {
        p50(); // Warms up what went cold in the last fault.
        return p50();
    }

    std::span<test::server> masters_;
    const options& asked_;
    progress& shown_;
    redlock_client client_;
};

} // namespace

figure_group measure_faults(std::span<test::server> masters, const options& asked, progress& shown)
{
    figure_group group{"One client, some of the masters out of order", "all healthy", {}};
    const std::size_t minority = masters.size() - quorum_of(masters.size());
    const std::size_t most = std::min(minority, most_faulty);
    fault_section near{masters, config_for(masters), asked, shown};
    for (std::size_t count = 1; count <= most; ++count)
    {
        near.hang(count, group.figures);
        near.kill(count, group.figures);
    }
    // Those that will be slow are behind proxies also when they are healthy. It is the others who decide, both times.
    proxied_masters distant{masters.first(most)};
    config with_distant = distant.options();
    for (const test::server& master : masters.subspan(most))
    {
        with_distant.masters.emplace_back(master.url());
    }
    fault_section with_proxies{masters, with_distant, asked, shown};
    for (std::size_t count = 1; count <= most; ++count)
    {
        with_proxies.slow_down(distant, count, group.figures);
    }
    return group;
}

} // namespace redlock::bench
