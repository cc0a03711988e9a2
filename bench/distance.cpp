// SPDX-License-Identifier: BSL-1.0
// How long one client takes to acquire from masters that are a round trip away, beside the reference and beside one that
// asks a master only when the one before has answered.
#include "sections.hpp"

#include "latency_record.hpp"
#include "proxied_masters.hpp"
#include "raw_client.hpp"
#include "redlock_client.hpp"

#include "support/control_client.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
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
constexpr std::size_t pings = 100;
// A pair takes milliseconds here.
constexpr std::size_t part_of_the_pairs = 2;
constexpr std::size_t part_of_the_sequential_pairs = 10;

/// Asks one master after the other until a majority has granted, which is the least that such a client can do: some ask
/// all of them each time. No deadlines, and its owner id is always the same: it is no lock to be used.
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

    stretch run(const work& what) override
    {
        const std::string key = std::string{key_prefix} + resource_of("article", 0);
        const std::string lifetime = std::to_string(ttl.count());
        stretch done;
        stopwatch watch{done, what};
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
    void ask_quorum(std::initializer_list<std::string_view> command)
    {
        for (std::size_t master = 0; master < quorum_; ++master)
        {
            const test::reply answer = masters_[master].command(command);
            if (!(answer == "OK") && !(answer == 1))
            {
                throw std::runtime_error{"a master refused the sequential client: " + describe(answer)};
            }
        }
    }

    std::size_t quorum_;
    std::vector<test::control_client> masters_;
};

/// What the proxies make of the round trip that they are asked for.
latency_record pinged(std::span<const int> ports)
{
    std::vector<std::chrono::nanoseconds> samples;
    for (const int port : ports)
    {
        test::control_client master = test::control_client::to_port(port);
        master.command({"PING"}); // The proxy connects to the master meanwhile.
        for (std::size_t ping = 0; ping < pings; ++ping)
        {
            const auto asked = std::chrono::steady_clock::now();
            master.command({"PING"});
            samples.push_back(std::chrono::steady_clock::now() - asked);
        }
    }
    latency_record seen;
    seen.add(std::move(samples));
    return seen;
}

} // namespace

figure_group measure_distance(std::span<test::server> masters, const options& asked, progress& shown)
{
    const std::string length = fmt::format("{} ms", round_trip / 1ms);
    proxied_masters distant{masters};
    const std::vector<int> ports = distant.ports();
    raw_client raw{ports};
    redlock_client redlock{distant.options()};
    sequential_client sequential{ports};
    redlock.await_unconnected(0);
    shown.show(fmt::format("masters {} away: warming up", length));
    distant.set_delay(round_trip, distant.size());
    // Masters, proxies and their timers take some time beside it.
    const std::chrono::duration<double, std::micro> beside{pinged(ports).overall(0.5) - round_trip / 1us};
    const auto delay = std::max(0us, round_trip - std::chrono::round<std::chrono::microseconds>(beside));
    distant.set_delay(delay, distant.size());
    const latency_record trips = pinged(ports);
    const work round{asked.pairs / part_of_the_pairs};
    const work sequential_round{asked.pairs / part_of_the_sequential_pairs};
    raw.run(sequential_round);
    redlock.run(sequential_round);
    latency_record raws;
    latency_record redlocks;
    latency_record sequentials;
    for (std::size_t done = 0; done < asked.rounds; ++done)
    {
        shown.show(fmt::format("masters {} away: round {} of {}", length, done + 1, asked.rounds));
        raws.add(raw.run(round).acquires);
        redlocks.add(redlock.run(round).acquires);
        sequentials.add(sequential.run(sequential_round).acquires);
    }
    return {
        fmt::format("One client, masters {} away", length),
        "raw",
        {compared("acquire p50", 0.5, raws, redlocks, 1.01),
         compared("acquire p99", 0.99, raws, redlocks, {}),
         compared("one by one: acquire p50", 0.5, raws, sequentials, {}),
         {"a master's PING there and back p50", "us", {}, trips.overall(0.5), {}, {}},
         {"a master's PING there and back p99", "us", {}, trips.overall(0.99), {}, {}}},
        {{"distance",
          fmt::format("Acquire latency of one client, masters {} away", length),
          "acquire latency [us]",
          "acquires [%]",
          true,
          false,
          {raws.distribution("raw"), redlocks.distribution("redlock"),
           sequentials.distribution("one by one")}}}};
}

} // namespace redlock::bench
