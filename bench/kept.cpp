// SPDX-License-Identifier: BSL-1.0
// What it costs to keep many leases: memory, CPU, and how close each came to its end.
#include "client.hpp"
#include "heap.hpp"
#include "masters.hpp"
#include "redlock_client.hpp"
#include "sections.hpp"

#include "cost/allocation_counter.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kept_ttl{30'000};
constexpr std::size_t acquired_at_once = 100;
constexpr std::chrono::milliseconds look_every{100};

/// A manager with a number of kept leases, on the calling thread.
class keeping_client
{
  public:
    explicit keeping_client(std::span<const test::server> masters) : locks_{io_, unhurried(masters)} {}

    void acquire(std::size_t count)
    {
        leases_.reserve(count);
        for (std::size_t worker = 0; worker < std::min(count, acquired_at_once); ++worker)
        {
            asio::co_spawn(
                io_, acquire_some(count),
                [](std::exception_ptr problem)
                {
                    if (problem)
                    {
                        std::rethrow_exception(problem);
                    }
                });
        }
        while (leases_.size() < count)
        {
            io_.run_one();
        }
        io_.poll();
    }

    /// Runs for so long and looks at every lease now and then. The looks are not part of the CPU time.
    void keep(std::chrono::milliseconds duration)
    {
        const clock::time_point ends = clock::now() + duration;
        while (clock::now() < ends)
        {
            const auto before = cpu_of_this_thread();
            const std::uint64_t allocations_before = test::allocations_of_this_thread();
            io_.run_for(look_every);
            cpu_ += cpu_of_this_thread() - before;
            allocations_ += test::allocations_of_this_thread() - allocations_before;
            ++looks_;
            if (looks_ % 10 == 0)
            {
                look();
            }
        }
        look();
    }

    void release()
    {
        leases_.clear();
        asio::co_spawn(io_, shut_down(locks_), asio::detached);
        io_.restart();
        io_.run();
    }

    std::chrono::nanoseconds cpu() const { return cpu_; }
    std::uint64_t allocations() const { return allocations_; }
    std::chrono::nanoseconds least_left() const { return least_left_; }
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

    void look()
    {
        for (const lease& each : leases_)
        {
            least_left_ = std::min<std::chrono::nanoseconds>(least_left_, each.remaining());
        }
    }

    asio::io_context io_{1};
    lock_manager locks_;
    std::vector<lease> leases_;
    std::size_t started_ = 0;
    std::size_t looks_ = 0;
    std::chrono::nanoseconds cpu_{0};
    std::uint64_t allocations_ = 0;
    std::chrono::nanoseconds least_left_ = std::chrono::hours{1};
};

void measure(
    std::size_t count, std::chrono::milliseconds window, std::span<test::server> masters, progress& shown,
    std::vector<figure>& out)
{
    shown.show(fmt::format("{} kept leases: acquiring", count));
    const std::size_t heap_before = heap_in_use();
    keeping_client client{masters};
    client.acquire(count);
    const double bytes =
        static_cast<double>(heap_in_use() - heap_before) - sizeof(lease) * static_cast<double>(count);
    const double scripts_before = commands_run(masters.first(1), "evalsha");
    shown.show(fmt::format("{} kept leases: keeping them for {} s", count, window.count() / 1000));
    client.keep(window);
    const double seconds = std::chrono::duration<double>{window}.count();
    const double extensions = (commands_run(masters.first(1), "evalsha") - scripts_before) / seconds;
    const double cpu = std::chrono::duration<double>{client.cpu()}.count() / seconds;
    const double left = std::chrono::duration<double>{client.least_left()}.count();
    const auto add = [&](std::string_view name, std::string unit, double value, std::optional<double> goal) {
        out.push_back({fmt::format("{} kept: {}", count, name), std::move(unit), {}, value, {}, goal});
    };
    const bool of_the_goal = count == 100'000;
    add("lost", "", static_cast<double>(client.lost()), 0.0);
    add("memory of each", "byte", bytes / static_cast<double>(count),
        of_the_goal ? std::optional{1024.0} : std::nullopt);
    add("client CPU", "%", cpu * 100, of_the_goal ? std::optional{10.0} : std::nullopt);
    add("extensions", "/s", extensions, {});
    add("client CPU of an extension", "us", extensions > 0 ? cpu / extensions * 1e6 : 0, {});
    add("heap allocations of an extension", "",
        extensions > 0 ? static_cast<double>(client.allocations()) / (extensions * seconds) : 0, {});
    add("least validity left", "s", left, {});
    shown.show(fmt::format("{} kept leases: giving them back", count));
    client.release();
}

} // namespace

figure_group measure_kept(std::span<test::server> masters, const options& asked, progress& shown)
{
    figure_group group{
        fmt::format(
            "Kept leases, ttl {} s", std::chrono::duration_cast<std::chrono::seconds>(kept_ttl).count()),
        "",
        {}};
    for (const std::size_t count : asked.kept)
    {
        measure(count, asked.keep_for, masters, shown, group.figures);
    }
    return group;
}

} // namespace redlock::bench
