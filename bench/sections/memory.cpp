// SPDX-License-Identifier: BSL-1.0
// What the heap of a client grows to while it works as fast as it can and some of the masters hang: what they owe an
// answer to must be remembered, and what can't be sent to them must not pile up.
#include "harness/redlock_client.hpp"
#include "harness/rounds.hpp"
#include "sections/sections.hpp"

#include "cost/allocation_counter.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

constexpr double mebibyte = 1 << 20;
constexpr std::size_t workers = 100;
constexpr std::chrono::milliseconds hung_for{2500}; // Well beyond dead_after, when hung masters are given up.
constexpr std::chrono::milliseconds given_up{1500};
constexpr std::chrono::milliseconds back_for{
    1500}; // They are connected again, and have answered what they owed.
constexpr std::chrono::milliseconds between_heap_looks{20};
constexpr std::size_t most_hung = 2;
constexpr double most_growth = 1; // MiB.
constexpr double most_kept = 16;  // MiB: queues and buffers stay as large as they were, for the next time.

/// At one moment.
struct heap_look
{
    double seconds;    // Since the masters were stopped.
    double growth;     // In MiB: how much more there is in use than at first.
    std::size_t pairs; // Begun since.
};

/// A client with all options at their defaults, whose workers lock and release as fast as they can.
class busy_client
{
  public:
    explicit busy_client(std::span<const test::server> masters) : locks_{io_, config_for(masters)}
    {
        // Until it is connected, and has what it keeps for later use.
        work_for(std::chrono::milliseconds{200});
        looks_.clear();
        looks_.reserve(static_cast<std::size_t>((hung_for + back_for) / between_heap_looks));
        began_ = clock::now();
        heap_before_ = test::heap_of_this_thread();
        pairs_ = 0;
    }

    void work_for(std::chrono::milliseconds duration)
    {
        over_ = false;
        for (std::size_t worker = 0; worker < workers; ++worker)
        {
            tasks_.start(acquire_and_release(worker));
        }
        tasks_.start(look(duration));
        tasks_.finish();
    }

    std::vector<heap_look> looks() && { return std::move(looks_); }

  private:
    asio::awaitable<void> acquire_and_release(std::size_t worker)
    {
        while (!over_)
        {
            ++pairs_;
            std::string name = resource_of("refund", worker);
            lease held = co_await locks_.async_acquire(std::move(name), ttl);
            error_code unconfirmed; // It is made up for.
            auto token = asio::redirect_error(asio::use_awaitable, unconfirmed);
            co_await held.async_release(token);
        }
    }

    asio::awaitable<void> look(std::chrono::milliseconds duration)
    {
        asio::steady_timer timer{co_await asio::this_coro::executor};
        for (auto looks = duration / between_heap_looks; looks > 0; --looks)
        {
            timer.expires_after(between_heap_looks);
            co_await timer.async_wait(asio::use_awaitable);
            const std::chrono::duration<double> passed = clock::now() - began_;
            const auto growth = static_cast<double>(test::heap_of_this_thread() - heap_before_);
            looks_.push_back({passed.count(), growth / mebibyte, pairs_});
        }
        over_ = true;
    }

    using clock = std::chrono::steady_clock;

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
    bool over_ = false;
    clock::time_point began_{};
    std::int64_t heap_before_ = 0;
    std::size_t pairs_ = 0;
    std::vector<heap_look> looks_;
};

/// What there was to see of the heap.
struct heap_course
{
    double highest;       // Growth, in MiB.
    double once_given_up; // What was added since.
    double once_back;     // Growth at the end.
    double per_pair; // The highest growth for each pair begun before hung masters were given up, in bytes.
    series line;
};

heap_course run(std::span<test::server> masters, std::size_t hung)
{
    busy_client client{masters};
    for (test::server& master : masters.first(hung))
    {
        master.stop();
    }
    client.work_for(hung_for);
    for (test::server& master : masters.first(hung))
    {
        master.resume();
    }
    client.work_for(back_for);
    const std::vector<heap_look> looks = std::move(client).looks();
    const auto last_until = [&](std::chrono::duration<double> end)
    { return *std::prev(std::ranges::upper_bound(looks, end.count(), {}, &heap_look::seconds)); };
    const double highest = std::ranges::max_element(looks, {}, &heap_look::growth)->growth;
    const auto unanswered = static_cast<double>(last_until(config{}.dead_after).pairs);
    heap_course seen{
        highest,
        last_until(hung_for).growth - last_until(given_up).growth,
        looks.back().growth,
        highest * mebibyte / unanswered,
        {}};
    for (const heap_look& each : looks)
    {
        seen.line.points.emplace_back(each.seconds, each.growth);
    }
    return seen;
}

} // namespace

figure_group measure_memory(std::span<test::server> masters, const options&, progress& shown)
{
    figure_group group{fmt::format("Heap of a client, {} at once", workers), "all healthy", {}};
    plot growth{"memory", "Growth of a client's heap under load", "time [s]", "growth [MiB]", false, false,
                {}};
    shown.show("the heap of a client, all healthy");
    heap_course healthy = run(masters, 0);
    healthy.line.name = "all healthy";
    growth.lines.push_back(std::move(healthy.line));
    const std::size_t minority = masters.size() - quorum_of(masters.size());
    for (std::size_t count = 1; count <= std::min(minority, most_hung); ++count)
    {
        shown.show(fmt::format("the heap of a client, {} of {} hung", count, masters.size()));
        heap_course seen = run(masters, count);
        const std::string hung = fmt::format(", {} hung", count);
        add({{"highest growth", "MiB", healthy.highest, seen.highest, {}, {}},
             {"the same for a pair in the first second", "byte", {}, seen.per_pair, {}, {}},
             {"growth once given up", "MiB", healthy.once_given_up, seen.once_given_up, {}, most_growth},
             {"growth once they are back", "MiB", healthy.once_back, seen.once_back, {}, most_kept}},
            "", hung, group.figures);
        seen.line.name = "redlock" + hung;
        growth.lines.push_back(std::move(seen.line));
    }
    group.plots.push_back(std::move(growth));
    group.notes.push_back(fmt::format(
        "Something is remembered of each pair that a master doesn't answer. What bounds it: after dead_after "
        "({}) "
        "its connection is closed, and nothing is added; and it can owe max_owed ({}) releases at most.",
        config{}.dead_after, config{}.max_owed));
    return group;
}

} // namespace redlock::bench
