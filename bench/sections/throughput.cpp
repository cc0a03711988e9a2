// SPDX-License-Identifier: BSL-1.0
// Pairs per second and their cost with many concurrent workers, each with its own resource, compared with both
// references.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/reference_clients.hpp"
#include "harness/rounds.hpp"

#include "cost/allocation_counter.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace redlock::bench
{

namespace
{

constexpr std::array<std::size_t, 4> worker_counts{1, 10, 100, 1000};
constexpr std::size_t judged_workers = 1000;

/// Returns the peak heap of a new client under this load: connections, buffers and state.
template <class Client>
double heap_peak_kib(const auto& made_of, const workload& load)
{
    constexpr double kib = 1024;
    const std::int64_t before = test::heap_of_this_thread();
    Client one{made_of};
    return static_cast<double>(one.run(load).heap_peak - before) / kib;
}

/// Curves over the number of workers.
class worker_growth
{
  public:
    void add(std::size_t workers, const std::vector<rounds>& by_client)
    {
        const auto at = static_cast<double>(workers);
        for (std::size_t client = 0; client < by_client.size(); ++client)
        {
            pairs_[client].points.emplace_back(at, value_of(pairs_per_second, by_client[client]));
            cpu_[2 * client].points.emplace_back(at, value_of(client_cpu_per_pair, by_client[client]));
            cpu_[2 * client + 1].points.emplace_back(at, value_of(server_cpu_per_pair, by_client[client]));
        }
    }

    std::vector<plot> plots() &&
    {
        const std::string workers = "concurrent workers, each with its own resource";
        return {
            {"throughput", "Pairs of acquire and release per second", workers, "pairs per second", true, true,
             std::move(pairs_)},
            {"throughput_cpu", "CPU time per pair", workers, "CPU per pair [us]", true, true,
             std::move(cpu_)}};
    }

  private:
    std::vector<series> pairs_{{"raw", {}}, {"asio", {}}, {"redlock", {}}};
    std::vector<series> cpu_{{"raw, client", {}},   {"raw, masters", {}},    {"asio, client", {}},
                             {"asio, masters", {}}, {"redlock, client", {}}, {"redlock, masters", {}}};
};

/// Returns the figures that both tables have.
std::vector<figure> costs(const rounds& reference, const rounds& measured, bool judged)
{
    const auto goal = [judged](double value) { return judged ? std::optional{value} : std::nullopt; };
    return {
        compared(pairs_per_second, reference, measured),
        // At least 0.95 times the pairs per second of the reference.
        compared(time_per_pair, reference, measured, goal(1 / 0.95)),
        compared(client_cpu_per_pair, reference, measured, goal(2.5)),
        compared(server_cpu_per_pair, reference, measured),
        without_ratio(allocations_per_pair, reference, measured, goal(2))};
}

} // namespace

figure_group measure_throughput(std::span<test::server> masters, const options& settings, progress& status)
{
    raw_client raw{ports_of(masters)};
    asio_client asio{ports_of(masters)};
    const config options_of_redlock = config_with_long_timeout(masters);
    redlock_client redlock{options_of_redlock};
    figure_group group{"Concurrent workers, each with its own resource, on all CPUs", "raw", {}};
    figure_group against_asio{"Concurrent workers, compared with bare Boost.Asio, on all CPUs", "asio", {}};
    worker_growth with_workers;
    for (const std::size_t workers : worker_counts)
    {
        const std::string suffix = fmt::format(", {} workers", workers);
        const std::vector<rounds> by_client = run_alternately(
            {{raw, masters}, {asio, masters}, {redlock, masters}}, round_for(workers, settings),
            settings.rounds, status, fmt::format("{} workers", workers));
        const rounds& raws = by_client[0];
        const rounds& asios = by_client[1];
        const rounds& redlocks = by_client[2];
        const bool judged = workers == judged_workers;
        add(costs(raws, redlocks, judged), "", suffix, group.figures);
        add(costs(asios, redlocks, false), "", suffix, against_asio.figures);
        if (judged)
        {
            add({compared(system_calls_per_pair, raws, redlocks), compared(bytes_sent, raws, redlocks),
                 compared(bytes_received, raws, redlocks)},
                "", suffix, group.figures);
            add({compared(system_calls_per_pair, asios, redlocks)}, "", suffix, against_asio.figures);
        }
        with_workers.add(workers, by_client);
    }
    const std::size_t max_workers = worker_counts.back();
    const double redlock_heap =
        heap_peak_kib<redlock_client>(options_of_redlock, round_for(max_workers, settings));
    const auto add_heap = [&](double reference, std::vector<figure>& to)
    {
        to.push_back(
            {fmt::format("peak heap, {} workers", max_workers), "KiB", reference, redlock_heap, {}, {}});
    };
    add_heap(heap_peak_kib<raw_client>(ports_of(masters), round_for(max_workers, settings)), group.figures);
    add_heap(
        heap_peak_kib<asio_client>(ports_of(masters), round_for(max_workers, settings)),
        against_asio.figures);
    group.notes.emplace_back(
        "The peak heap is that of a new client with its connections, buffers and workers "
        "(redlock: one coroutine each), without the samples of the bench.");
    group.plots = std::move(with_workers).plots();
    group.related.push_back(std::move(against_asio));
    return group;
}

} // namespace redlock::bench
