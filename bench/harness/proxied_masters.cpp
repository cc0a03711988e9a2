// SPDX-License-Identifier: BSL-1.0
// A proxy in front of each master.
#include "harness/proxied_masters.hpp"

#include <sched.h>
#include <unistd.h>

namespace redlock::bench
{

namespace
{

/// During its lifetime, threads that the calling thread starts run on CPUs which that thread doesn't use.
class other_cpus
{
  public:
    other_cpus()
    {
        ::sched_getaffinity(0, sizeof own_, &own_);
        cpu_set_t others;
        CPU_ZERO(&others);
        const auto count = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_CONF));
        for (std::size_t cpu = 0; cpu < count; ++cpu)
        {
            if (!CPU_ISSET(cpu, &own_))
            {
                CPU_SET(cpu, &others);
            }
        }
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

std::vector<int> proxied_masters::ports() const
{
    std::vector<int> out;
    for (const test::proxy& each : proxies_)
    {
        out.push_back(each.port());
    }
    return out;
}

config proxied_masters::options() const
{
    config out;
    for (const test::proxy& each : proxies_)
    {
        out.masters.emplace_back(each.url());
    }
    return out;
}

} // namespace redlock::bench
