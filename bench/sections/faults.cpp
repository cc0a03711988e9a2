// SPDX-License-Identifier: BSL-1.0
// How long an acquire takes while a minority of the masters is out of order, beside what it takes when none
// is.
#include "sections/sections.hpp"

#include "harness/proxied_masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

// Less than dead_after: so long at least the connections to stopped masters stay open.
constexpr std::chrono::milliseconds while_connected{800};
constexpr std::size_t most_faulty = 2;
constexpr std::chrono::milliseconds slow_by{5};

/// Rounds with a fault, and the healthy one before each.
struct faulty_rounds
{
    std::string name;
    bool is_drawn = true;
    rounds healthy{};
    rounds faulty{};
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
    void hang(std::size_t count, std::vector<faulty_rounds>& out)
    {
        faulty_rounds connected{fmt::format("{} hung", count)};
        faulty_rounds given_up{fmt::format("{} hung and given up", count), false};
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "hung", round);
            run_healthy(connected);
            given_up.healthy.push_back(connected.healthy.back());
            for (test::server& master : masters_.first(count))
            {
                master.stop();
            }
            connected.faulty.push_back(run(while_connected));
            client_.await_unconnected(count);
            given_up.faulty.push_back(run());
            for (test::server& master : masters_.first(count))
            {
                master.resume();
            }
            client_.await_unconnected(0);
        }
        out.push_back(std::move(connected));
        out.push_back(std::move(given_up));
    }

    /// SIGKILL.
    void kill(std::size_t count, std::vector<faulty_rounds>& out)
    {
        faulty_rounds dead{fmt::format("{} dead", count)};
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "dead", round);
            run_healthy(dead);
            for (test::server& master : masters_.first(count))
            {
                master.kill();
            }
            client_.await_unconnected(count);
            dead.faulty.push_back(run());
            for (test::server& master : masters_.first(count))
            {
                master.restart();
            }
            client_.await_unconnected(0);
        }
        out.push_back(std::move(dead));
    }

    /// They answer late, but in time.
    void slow_down(proxied_masters& distant, std::size_t count, std::vector<faulty_rounds>& out)
    {
        faulty_rounds slow{fmt::format("{} slow by {} ms", count, slow_by.count())};
        for (std::size_t round = 0; round < asked_.rounds; ++round)
        {
            show(count, "slow", round);
            run_healthy(slow);
            distant.set_delay(slow_by, count);
            slow.faulty.push_back(run());
            distant.set_delay({}, count);
        }
        out.push_back(std::move(slow));
    }

  private:
    void show(std::size_t count, std::string_view how, std::size_t round)
    {
        shown_.show(fmt::format(
            "{} of {} {}: round {} of {}", count, masters_.size(), how, round + 1, asked_.rounds));
    }

    stretch run(std::chrono::nanoseconds at_most = std::chrono::minutes{5})
    {
        return measured({client_, {}}, {asked_.pairs, at_most}); // Dead masters show no CPU time.
    }

    void run_healthy(faulty_rounds& into)
    {
        run(); // Warms up what went cold in the last fault.
        into.healthy.push_back(run());
    }

    std::span<test::server> masters_;
    const options& asked_;
    progress& shown_;
    redlock_client client_;
};

constexpr std::string_view reference = "all healthy";

/// Their figures, and a picture of all of them.
void add(std::string name, std::string title, const std::vector<faulty_rounds>& seen, figure_group& to)
{
    rounds healthy;
    std::vector<series> lines;
    for (const faulty_rounds& each : seen)
    {
        healthy.insert(healthy.end(), each.healthy.begin(), each.healthy.end());
        if (each.is_drawn)
        {
            lines.push_back(distribution(each.name, each.faulty));
        }
        add({compared(acquire_p50, each.healthy, each.faulty, 1.1)}, "", ", " + each.name, to.figures);
    }
    lines.insert(lines.begin(), distribution(std::string{reference}, healthy));
    to.plots.push_back(distribution_plot(std::move(name), std::move(title), std::move(lines)));
}

} // namespace

figure_group measure_faults(std::span<test::server> masters, const options& asked, progress& shown)
{
    figure_group group{"One client, some of the masters out of order", std::string{reference}, {}};
    const std::size_t minority = masters.size() - quorum_of(masters.size());
    const std::size_t most = std::min(minority, most_faulty);
    fault_section near{masters, config_for(masters), asked, shown};
    std::vector<faulty_rounds> gone;
    for (std::size_t count = 1; count <= most; ++count)
    {
        near.hang(count, gone);
        near.kill(count, gone);
    }
    add("faults", "Acquire latency of one client, some masters hung or dead", gone, group);
    // Those that will be slow are behind proxies also when they are healthy. It is the others who decide, both times.
    proxied_masters distant{masters.first(most)};
    config with_distant = distant.options();
    for (const test::server& master : masters.subspan(most))
    {
        with_distant.masters.emplace_back(master.url());
    }
    fault_section with_proxies{masters, with_distant, asked, shown};
    std::vector<faulty_rounds> slow;
    for (std::size_t count = 1; count <= most; ++count)
    {
        with_proxies.slow_down(distant, count, slow);
    }
    add("faults_slow", "Acquire latency of one client, some masters slow, all of these behind proxies", slow,
        group);
    return group;
}

} // namespace redlock::bench
