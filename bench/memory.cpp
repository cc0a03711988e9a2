// SPDX-License-Identifier: BSL-1.0
// What the heap of a client grows to while it works as fast as it can and some of the masters hang: what they owe an
// answer to must be remembered, and what can't be sent to them must not pile up.
#include "heap.hpp"
#include "redlock_client.hpp"
#include "sections.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

constexpr double mebibyte = 1 << 20;
constexpr std::size_t workers = 100;
constexpr std::chrono::milliseconds load_lasts{
    3000}; // Well beyond dead_after, when hung masters are given up.
constexpr std::chrono::milliseconds given_up{2000};
constexpr std::chrono::milliseconds between_heap_looks{20};
constexpr std::array<std::size_t, 3> how_many_hang{0, 1, 2};
// As much as may wait by default to be written to one master.
const double most_growth = static_cast<double>(config{}.max_waiting_bytes) / mebibyte;
constexpr double most_growth_when_given_up = 1;

/// How much more of the heap there was in use than at first, in MiB, above the seconds.
using heap_growth = std::vector<std::pair<double, double>>;

/// A client with all options at their defaults, whose workers lock and release as fast as they can.
class busy_client
{
  public:
    explicit busy_client(std::span<const test::server> masters) : locks_{io_, config_for(masters)}
    {
        work_for(
            std::chrono::milliseconds{200}); // Until it is connected, and has what it keeps for later use.
    }

    heap_growth work_for(std::chrono::milliseconds duration)
    {
        over_ = false;
        for (std::size_t worker = 0; worker < workers; ++worker)
        {
            tasks_.start(acquire_and_release(worker));
        }
        heap_growth seen;
        tasks_.start(look(duration, seen));
        tasks_.finish();
        return seen;
    }

  private:
    asio::awaitable<void> acquire_and_release(std::size_t worker)
    {
        while (!over_)
        {
            std::string name = resource_of("refund", worker);
            lease held = co_await locks_.async_acquire(std::move(name), ttl);
            error_code unconfirmed; // It is made up for.
            auto token = asio::redirect_error(asio::use_awaitable, unconfirmed);
            co_await held.async_release(token);
        }
    }

    asio::awaitable<void> look(std::chrono::milliseconds duration, heap_growth& seen)
    {
        asio::steady_timer timer{co_await asio::this_coro::executor};
        const auto looks = duration / between_heap_looks;
        seen.reserve(static_cast<std::size_t>(looks));
        const auto began = std::chrono::steady_clock::now();
        const auto before = static_cast<double>(heap_in_use());
        for (int done = 0; done < looks; ++done)
        {
            timer.expires_after(between_heap_looks);
            co_await timer.async_wait(asio::use_awaitable);
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
            seen.emplace_back(passed.count(), (static_cast<double>(heap_in_use()) - before) / mebibyte);
        }
        over_ = true;
    }

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
    bool over_ = false;
};

heap_growth run(std::span<test::server> masters, std::size_t hung)
{
    busy_client client{masters};
    for (test::server& master : masters.first(hung))
    {
        master.stop();
    }
    heap_growth seen = client.work_for(load_lasts);
    for (test::server& master : masters.first(hung))
    {
        master.resume();
    }
    return seen;
}

double highest(const heap_growth& of)
{
    const auto lower = [](const auto& left, const auto& right) { return left.second < right.second; };
    return std::max_element(of.begin(), of.end(), lower)->second;
}

/// What was added since hung masters are without a connection.
double when_given_up(const heap_growth& of)
{
    const auto is_early = [](const auto& point)
    { return point.first < std::chrono::duration<double>{given_up}.count(); };
    return of.back().second - std::find_if_not(of.begin(), of.end(), is_early)->second;
}

} // namespace

figure_group measure_memory(std::span<test::server> masters, const options&, progress& shown)
{
    figure_group group{fmt::format("Heap of a client, {} at once", workers), "all healthy", {}};
    plot growth{"memory", "Growth of a client's heap under load", "time [s]", "growth [MiB]", false, false,
                {}};
    heap_growth healthy;
    for (const std::size_t count : how_many_hang)
    {
        if (count > masters.size() - quorum_of(masters.size()))
        {
            break;
        }
        shown.show(fmt::format("the heap of a client, {} of {} hung", count, masters.size()));
        heap_growth seen = run(masters, count);
        if (count == 0)
        {
            growth.lines.push_back({"all healthy", seen});
            healthy = std::move(seen);
            continue;
        }
        group.figures.push_back(
            {fmt::format("highest growth, {} hung", count),
             "MiB",
             highest(healthy),
             highest(seen),
             {},
             most_growth});
        group.figures.push_back(
            {fmt::format("growth once given up, {} hung", count),
             "MiB",
             when_given_up(healthy),
             when_given_up(seen),
             {},
             most_growth_when_given_up});
        growth.lines.push_back({fmt::format("redlock, {} hung", count), std::move(seen)});
    }
    group.plots.push_back(std::move(growth));
    return group;
}

} // namespace redlock::bench
