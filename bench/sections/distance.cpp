// SPDX-License-Identifier: BSL-1.0
// Acquire latency with masters that are a round trip away, compared with the raw reference and with a client that
// sends to one master after the other.
#include "sections/sections.hpp"

#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/reference_clients.hpp"
#include "harness/rounds.hpp"

#include "support/control_client.hpp"

#include <chrono>
#include <cstddef>
#include <stdexcept>
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

constexpr std::chrono::microseconds round_trip = 1ms;
constexpr std::size_t pairs_divisor = 4; // A pair takes milliseconds here.

/// Sends to one master after the other until a majority has granted. This is the fastest client of that kind: some
/// send to all masters each time. It has no deadlines and a constant owner id, so it can't be used as a lock.
class sequential_client final : public client
{
  public:
    explicit sequential_client(std::span<const int> ports) : quorum_{quorum_of(ports.size())}
    {
        for (const int port : ports)
        {
            masters_.push_back(test::control_client::to_port(port));
        }
    }

    run_record run(const workload& load) override
    {
        const std::string key = std::string{key_prefix} + resource_of("article", 0);
        const std::string lifetime = std::to_string(ttl.count());
        run_record done;
        stopwatch watch{done, load};
        stopwatch::clock::time_point asked;
        while (watch.begin_pair(asked))
        {
            ask_quorum({"SET", key, "owner", "NX", "PX", lifetime});
            watch.end_acquire(asked);
            ask_quorum({"DEL", key});
        }
        watch.finish();
        return done;
    }

  private:
    void ask_quorum(const std::vector<std::string_view>& command)
    {
        for (std::size_t master = 0; master < quorum_; ++master)
        {
            const test::reply answer = masters_[master].command(command);
            if (!(answer == "OK") && !(answer == 1))
            {
                throw std::runtime_error{
                    "a master refused a command of the sequential client: " + describe(answer)};
            }
        }
    }

    std::size_t quorum_;
    std::vector<test::control_client> masters_;
};

} // namespace

figure_group measure_distance(std::span<test::server> masters, const options& settings, progress& status)
{
    const std::string length = fmt::format("{} ms", round_trip / 1ms);
    proxied_masters distant{masters};
    const std::vector<int> ports = distant.ports();
    raw_client raw{ports};
    redlock_client redlock{distant.options()};
    sequential_client sequential{ports};
    redlock.await_disconnected(0);
    status.show(fmt::format("masters {} away: warming up", length));
    distant.set_round_trip(round_trip);
    const auto trips = measure_pings(ports);
    const std::vector<rounds> by_client = run_alternately(
        {{raw, masters}, {redlock, masters}, {sequential, masters}}, {settings.pairs / pairs_divisor},
        settings.rounds, status, fmt::format("masters {} away", length));
    const rounds& raws = by_client[0];
    const rounds& redlocks = by_client[1];
    const rounds& sequentials = by_client[2];
    figure_group group{
        fmt::format("One client, masters {} away", length),
        "raw",
        {compared(acquire_p50, raws, redlocks, 1.01), compared(acquire_p99, raws, redlocks)}};
    add({compared(acquire_p50, raws, sequentials)}, "sequential: ", "", group.figures);
    add({{"p50", "us", {}, percentile_us(trips, 0.5), {}, {}},
         {"p99", "us", {}, percentile_us(trips, 0.99), {}, {}}},
        "PING round trip ", "", group.figures);
    group.plots.push_back(distribution_plot(
        "distance", fmt::format("Acquire latency of one client, masters {} away", length),
        {distribution("raw", raws), distribution("redlock", redlocks),
         distribution("sequential", sequentials)}));
    return group;
}

} // namespace redlock::bench
