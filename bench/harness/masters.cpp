// SPDX-License-Identifier: BSL-1.0
// Command counts and CPU time of the masters, and proxies in front of them.
#include "harness/masters.hpp"

#include "harness/client.hpp"
#include "harness/statistics.hpp"

#include "support/control_client.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sched.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t ping_count = 100;

/// During its lifetime, threads that the calling thread starts run on CPUs which that thread doesn't use.
class other_cpus
{
  public:
    other_cpus()
    {
        ::sched_getaffinity(0, sizeof own_, &own_);
        cpu_set_t others;
        std::memset(&others, 0xff, sizeof others); // The kernel ignores CPUs that don't exist.
        CPU_XOR(&others, &others, &own_);
        // Fails if there are no other CPUs. Then they share the caller's.
        ::sched_setaffinity(0, sizeof others, &others);
    }
    other_cpus(const other_cpus&) = delete;
    other_cpus& operator=(const other_cpus&) = delete;
    ~other_cpus() { ::sched_setaffinity(0, sizeof own_, &own_); }

  private:
    cpu_set_t own_{};
};

} // namespace

double commands_run(std::span<test::server> masters, std::string_view name)
{
    const std::string field = fmt::format("cmdstat_{}:calls=", name);
    double count = 0;
    for (test::server& master : masters)
    {
        const std::string stats = master.command({"INFO", "commandstats"}).text;
        if (const std::size_t at = stats.find(field); at != std::string::npos)
        {
            count += std::stod(stats.substr(at + field.size(), 20));
        }
    }
    return count;
}

std::chrono::nanoseconds cpu_of(std::span<const test::server> masters)
{
    std::chrono::nanoseconds sum{0};
    for (const test::server& master : masters)
    {
        clockid_t clock{};
        if (const int problem = ::clock_getcpuclockid(master.pid(), &clock); problem != 0)
        {
            throw std::system_error{problem, std::generic_category(), "reading the CPU time of a master"};
        }
        sum += cpu_time(clock);
    }
    return sum;
}

proxied_masters::proxied_masters(std::span<const test::server> masters)
{
    const other_cpus for_their_threads;
    for (const test::server& master : masters)
    {
        proxies_.emplace_back(master.port());
    }
}

void proxied_masters::set_delay(std::chrono::microseconds there_and_back, std::size_t count)
{
    for (std::size_t master = 0; master < count; ++master)
    {
        proxies_[master].set_delay(there_and_back / 2);
    }
}

std::vector<std::chrono::nanoseconds> measure_pings(std::span<const int> ports)
{
    std::vector<std::chrono::nanoseconds> samples;
    for (const int port : ports)
    {
        test::control_client master = test::control_client::to_port(port);
        master.command({"PING"}); // Until the proxy has connected to the master.
        for (std::size_t ping = 0; ping < ping_count; ++ping)
        {
            const auto asked = std::chrono::steady_clock::now();
            master.command({"PING"});
            samples.push_back(std::chrono::steady_clock::now() - asked);
        }
    }
    return sorted(std::move(samples));
}

void proxied_masters::set_round_trip(std::chrono::microseconds there_and_back)
{
    set_delay(there_and_back, size());
    const std::chrono::duration<double, std::micro> measured{percentile_us(measure_pings(ports()), 0.5)};
    const auto overhead = std::chrono::round<std::chrono::microseconds>(measured - there_and_back);
    set_delay(std::max(std::chrono::microseconds{0}, there_and_back - overhead), size());
}

} // namespace redlock::bench
