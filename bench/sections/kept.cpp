// SPDX-License-Identifier: BSL-1.0
// The cost of leases with automatic extension: memory, CPU, and the shortest remaining validity.
#include "harness/client.hpp"
#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "sections/sections.hpp"

#include "cost/allocation_counter.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kept_ttl{30'000};
constexpr std::size_t concurrent_acquires = 100;
constexpr std::chrono::milliseconds sample_interval{100};
// A sample reads one slice of the leases, because it delays the extensions that are due meanwhile.
constexpr std::size_t sample_slices = 10;
// Extensions are due at multiples of this duration on the library's clock (docs/algorithm.md). An extension sent
// between two ticks was due at the first one, if it isn't late by more than a tick.
constexpr std::chrono::milliseconds tick{25};
// Counted from the reply to the previous extension; the reply is expected within a tick.
constexpr std::chrono::milliseconds max_extension_interval = kept_ttl / 3 + kept_ttl / 30;
constexpr std::chrono::milliseconds max_punctual_interval = max_extension_interval + 2 * tick;

/// The drift allowance of docs/algorithm.md with the default `config::drift_factor`.
std::chrono::nanoseconds drift_of(std::chrono::milliseconds ttl)
{
    return ttl / 100 + std::chrono::milliseconds{2};
}

/// A manager with leases that are extended automatically, on the calling thread.
class keeping_client
{
  public:
    explicit keeping_client(std::span<const test::server> masters)
        : locks_{io_, config_with_long_timeout(masters)}
    {
    }

    void acquire(std::size_t count)
    {
        leases_.reserve(count);
        for (std::size_t worker = 0; worker < std::min(count, concurrent_acquires); ++worker)
        {
            tasks_.start(acquire_some(count));
        }
        tasks_.finish();
        io_.restart();
        io_.poll(); // The replies that have arrived.
    }

    /// Runs for this duration and samples the leases. The sampling isn't part of the CPU time.
    void keep(std::chrono::milliseconds duration)
    {
        for (const lease& each : leases_)
        {
            last_valid_until_.push_back(each.valid_until());
        }
        const clock::time_point ends = clock::now() + duration;
        for (std::size_t sample = 0; clock::now() < ends; ++sample)
        {
            const auto before = cpu_of_this_thread();
            const std::uint64_t allocations_before = test::allocations_of_this_thread();
            io_.run_for(sample_interval);
            cpu_ += cpu_of_this_thread() - before;
            allocations_ += test::allocations_of_this_thread() - allocations_before;
            sample_slice(sample % sample_slices);
        }
    }

    void release()
    {
        leases_.clear();
        tasks_.start(shut_down(locks_));
        tasks_.finish();
    }

    std::chrono::nanoseconds cpu() const { return cpu_; }
    std::uint64_t allocations() const { return allocations_; }
    std::chrono::nanoseconds min_validity() const { return min_validity_; }
    std::chrono::nanoseconds max_between_extensions() const { return max_between_; }
    /// Returns the delay of each extension, from when it was due to when it was sent.
    const std::vector<std::chrono::nanoseconds>& lateness() const { return lateness_; }
    std::size_t lost() const
    {
        return static_cast<std::size_t>(
            std::count_if(leases_.begin(), leases_.end(), [](const lease& each) { return !each.valid(); }));
    }

  private:
    asio::awaitable<void> acquire_some(std::size_t count)
    {
        const keep_options options{
            .ttl = kept_ttl, .max_hold = redlock::no_limit, .wait = std::chrono::minutes{5}};
        while (started_ < count)
        {
            std::string resource = "kept:" + std::to_string(started_++);
            lease held = co_await locks_.async_acquire_kept(std::move(resource), options);
            leases_.push_back(std::move(held));
        }
    }

    void sample_slice(std::size_t part)
    {
        const auto slice_begin = [&](std::size_t number) { return leases_.size() * number / sample_slices; };
        const clock::time_point now = clock::now();
        for (std::size_t at = slice_begin(part); at < slice_begin(part + 1); ++at)
        {
            const clock::time_point valid_until = leases_[at].valid_until();
            min_validity_ = std::min<std::chrono::nanoseconds>(min_validity_, valid_until - now);
            if (const auto extended_by = valid_until - std::exchange(last_valid_until_[at], valid_until);
                extended_by.count() > 0)
            {
                // The validity is counted from the time of sending.
                const clock::time_point sent = valid_until - (kept_ttl - drift_of(kept_ttl));
                lateness_.push_back(sent.time_since_epoch() % tick);
                max_between_ = std::max<std::chrono::nanoseconds>(max_between_, extended_by);
            }
        }
    }

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
    std::vector<lease> leases_;
    std::vector<clock::time_point> last_valid_until_; // At the previous sample of each lease.
    std::vector<std::chrono::nanoseconds> lateness_;
    std::chrono::nanoseconds max_between_{0};
    std::size_t started_ = 0;
    std::chrono::nanoseconds cpu_{0};
    std::uint64_t allocations_ = 0;
    std::chrono::nanoseconds min_validity_ = std::chrono::hours{1};
};

/// Curves over the number of leases.
struct lease_growth
{
    series memory{"redlock", {}};
    series client_cpu{"redlock", {}};
    series server_cpu{"all masters", {}};
    series extensions{"redlock", {}};

    std::vector<plot> plots() &&
    {
        const std::string leases = "kept leases";
        return {
            {"kept_memory", "Memory of kept leases", leases, "heap [MiB]", true, true, {std::move(memory)}},
            {"kept_cpu",
             "CPU of kept leases",
             leases,
             "of a core [%]",
             true,
             true,
             {std::move(client_cpu), std::move(server_cpu)}},
            {"kept_extensions",
             "Extensions of kept leases",
             leases,
             "extensions [/s]",
             true,
             true,
             {std::move(extensions)}}};
    }
};

void measure(
    std::size_t count, std::chrono::milliseconds window, std::span<test::server> masters, progress& status,
    std::vector<figure>& out, lease_growth& growth)
{
    status.show(fmt::format("{} kept leases: acquiring", count));
    const auto leases = static_cast<double>(count);
    const std::int64_t heap_before = test::heap_of_this_thread();
    keeping_client client{masters};
    client.acquire(count);
    const double bytes =
        static_cast<double>(test::heap_of_this_thread() - heap_before) - sizeof(lease) * leases;
    const double scripts_before = commands_run(masters.first(1), "evalsha");
    const auto server_cpu_before = cpu_of(masters);
    status.show(fmt::format("{} kept leases: keeping for {} s", count, window.count() / 1000));
    client.keep(window);
    const std::chrono::duration<double> length = window;
    const double server_cpu = (cpu_of(masters) - server_cpu_before) / length;
    const double extensions = (commands_run(masters.first(1), "evalsha") - scripts_before) / length.count();
    const double cpu = client.cpu() / length;
    const auto add = [&](std::string_view name, std::string unit, double value,
                         std::optional<double> goal = {}) {
        out.push_back({fmt::format("{} kept: {}", count, name), std::move(unit), {}, value, {}, goal});
    };
    const bool has_goals = count == 100'000;
    const auto goal = [&](double value) { return has_goals ? std::optional{value} : std::nullopt; };
    add("lost", "", static_cast<double>(client.lost()), 0.0);
    add("memory per lease", "byte", bytes / leases, goal(1024));
    add("client CPU", "%", cpu * 100, goal(10));
    add("CPU of all masters", "%", server_cpu * 100);
    add("extensions", "/s", extensions);
    if (extensions > 0)
    {
        add("client CPU per extension", "us", cpu / extensions * 1e6);
        add("heap allocations per extension", "",
            static_cast<double>(client.allocations()) / (extensions * length.count()));
        add("longest extension interval", "s",
            std::chrono::duration<double>{client.max_between_extensions()}.count(),
            goal(std::chrono::duration<double>{max_punctual_interval}.count()));
        if (!client.lateness().empty() && client.max_between_extensions() <= max_punctual_interval)
        {
            constexpr double us_per_ms = 1000;
            const auto samples = sorted(client.lateness());
            add("extension delay p50", "ms", percentile_us(samples, 0.5) / us_per_ms);
            add("extension delay p99", "ms", percentile_us(samples, 0.99) / us_per_ms);
            add("extension delay max", "ms", percentile_us(samples, 1) / us_per_ms);
        }
    }
    add("shortest remaining validity", "s", std::chrono::duration<double>{client.min_validity()}.count());
    growth.memory.points.emplace_back(leases, bytes / (1 << 20));
    growth.client_cpu.points.emplace_back(leases, cpu * 100);
    growth.server_cpu.points.emplace_back(leases, server_cpu * 100);
    growth.extensions.points.emplace_back(leases, extensions);
    status.show(fmt::format("{} kept leases: releasing", count));
    client.release();
}

} // namespace

figure_group measure_kept(std::span<test::server> masters, const options& settings, progress& status)
{
    figure_group group{
        fmt::format(
            "Kept leases, ttl {} s", std::chrono::duration_cast<std::chrono::seconds>(kept_ttl).count()),
        "",
        {}};
    lease_growth growth;
    for (const std::size_t count : settings.kept)
    {
        measure(count, settings.keep_for, masters, status, group.figures, growth);
    }
    if (settings.kept.size() > 1)
    {
        group.plots = std::move(growth).plots();
    }
    return group;
}

} // namespace redlock::bench
