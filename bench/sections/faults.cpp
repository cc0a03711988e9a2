// SPDX-License-Identifier: BSL-1.0
// Acquire latency while a minority of the masters is hung, dead or slow, compared with healthy masters.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"

#include <algorithm>
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

// Less than response_timeout, so that the connections to stopped masters remain open during the run.
constexpr std::chrono::milliseconds connected_time{800};
constexpr std::size_t max_faulty = 2;
constexpr std::chrono::milliseconds slow_delay{5};

/// Rounds with a fault, and the healthy round before each.
struct fault_rounds
{
    std::string name;
    bool is_drawn = true;
    rounds healthy{};
    rounds faulty{};
};

class fault_runner
{
  public:
    fault_runner(
        std::span<test::server> masters, const config& to_reach_them, const options& settings,
        progress& status)
        : masters_{masters}, settings_{settings}, status_{status}, client_{to_reach_them}
    {
        client_.await_disconnected(0);
    }

    /// Stops masters with SIGSTOP. Measures while their connections are open, and again after the client has closed
    /// them.
    void hang(std::size_t count, std::vector<fault_rounds>& out)
    {
        fault_rounds connected{fmt::format("{} hung", count)};
        fault_rounds given_up{fmt::format("{} hung, disconnected", count), false};
        for (std::size_t round = 0; round < settings_.rounds; ++round)
        {
            show(count, "hung", round);
            run_healthy(connected);
            given_up.healthy.push_back(connected.healthy.back());
            std::ranges::for_each(masters_.first(count), &test::server::stop);
            connected.faulty.push_back(run(connected_time));
            client_.await_disconnected(count);
            given_up.faulty.push_back(run());
            std::ranges::for_each(masters_.first(count), &test::server::resume);
            client_.await_disconnected(0);
        }
        out.push_back(std::move(connected));
        out.push_back(std::move(given_up));
    }

    /// Kills masters with SIGKILL.
    void kill(std::size_t count, std::vector<fault_rounds>& out)
    {
        fault_rounds dead{fmt::format("{} dead", count)};
        for (std::size_t round = 0; round < settings_.rounds; ++round)
        {
            show(count, "dead", round);
            run_healthy(dead);
            std::ranges::for_each(masters_.first(count), &test::server::kill);
            client_.await_disconnected(count);
            dead.faulty.push_back(run());
            std::ranges::for_each(masters_.first(count), &test::server::restart);
            client_.await_disconnected(0);
        }
        out.push_back(std::move(dead));
    }

    /// Delays the replies of masters, within the node timeout.
    void slow_down(proxied_masters& distant, std::size_t count, std::vector<fault_rounds>& out)
    {
        fault_rounds slow{fmt::format("{} slow by {} ms", count, slow_delay.count())};
        for (std::size_t round = 0; round < settings_.rounds; ++round)
        {
            show(count, "slow", round);
            run_healthy(slow);
            distant.set_delay(slow_delay, count);
            slow.faulty.push_back(run());
            distant.set_delay({}, count);
        }
        out.push_back(std::move(slow));
    }

  private:
    void show(std::size_t count, std::string_view how, std::size_t round)
    {
        status_.show(fmt::format(
            "{} of {} {}: round {} of {}", count, masters_.size(), how, round + 1, settings_.rounds));
    }

    run_record run(std::chrono::nanoseconds time_limit = std::chrono::minutes{5})
    {
        // Without masters, because dead ones have no CPU time.
        return run_measured({client_, {}}, {settings_.pairs, time_limit});
    }

    void run_healthy(fault_rounds& into)
    {
        run(); // Warms up again after the previous fault.
        into.healthy.push_back(run());
    }

    std::span<test::server> masters_;
    const options& settings_;
    progress& status_;
    redlock_client client_;
};

constexpr std::string_view reference = "all healthy";

/// Adds the figures and one plot of all distributions.
void add(std::string name, std::string title, const std::vector<fault_rounds>& faults, figure_group& to)
{
    rounds healthy;
    std::vector<series> lines;
    for (const fault_rounds& each : faults)
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

figure_group measure_faults(std::span<test::server> masters, const options& settings, progress& status)
{
    figure_group group{"One client, some masters hung, dead or slow", std::string{reference}, {}};
    const std::size_t minority = masters.size() - quorum_of(masters.size());
    const std::size_t max_count = std::min(minority, max_faulty);
    fault_runner near{masters, config_for(masters), settings, status};
    std::vector<fault_rounds> unresponsive;
    for (std::size_t count = 1; count <= max_count; ++count)
    {
        near.hang(count, unresponsive);
        near.kill(count, unresponsive);
    }
    add("faults", "Acquire latency of one client, some masters hung or dead", unresponsive, group);
    // The masters that become slow are reached through proxies in the healthy rounds as well. The others decide in both.
    proxied_masters distant{masters.first(max_count)};
    config with_distant = distant.options();
    for (const test::server& master : masters.subspan(max_count))
    {
        with_distant.masters.emplace_back(master.url());
    }
    fault_runner with_proxies{masters, with_distant, settings, status};
    std::vector<fault_rounds> slow;
    for (std::size_t count = 1; count <= max_count; ++count)
    {
        with_proxies.slow_down(distant, count, slow);
    }
    add("faults_slow", "Acquire latency of one client, some masters slow, through proxies", slow, group);
    return group;
}

} // namespace redlock::bench
