// SPDX-License-Identifier: BSL-1.0
// The heap of a client under full load while masters hang. The client keeps a record of each unanswered command,
// but doesn't queue commands for a hung master without limit.
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
// Longer than response_timeout, when the client closes the connections to hung masters.
constexpr std::chrono::milliseconds hung_for{2500};
constexpr std::chrono::milliseconds given_up_after{1500};
// Long enough to reconnect and to receive the outstanding replies.
constexpr std::chrono::milliseconds resumed_for{1500};
constexpr std::chrono::milliseconds heap_sample_interval{20};
constexpr std::size_t max_hung = 2;
constexpr double max_growth_mib = 1;
constexpr double max_retained_mib = 16; // Queues and buffers keep their capacity.

/// The heap at one moment.
struct heap_sample
{
    double seconds;    // Since the masters were stopped.
    double growth;     // In MiB, compared with the heap before that.
    std::size_t pairs; // Begun since then.
};

/// A client with default options, whose workers acquire and release as fast as they can.
class busy_client
{
  public:
    explicit busy_client(std::span<const test::server> masters) : locks_{io_, config_for(masters)}
    {
        // Until it is connected and its buffers have reached their size.
        work_for(std::chrono::milliseconds{200});
        samples_.clear();
        samples_.reserve(static_cast<std::size_t>((hung_for + resumed_for) / heap_sample_interval));
        began_ = clock::now();
        heap_before_ = test::heap_of_this_thread();
        pairs_ = 0;
    }

    void work_for(std::chrono::milliseconds duration)
    {
        stopping_ = false;
        for (std::size_t worker = 0; worker < workers; ++worker)
        {
            tasks_.start(acquire_and_release(worker));
        }
        tasks_.start(sample_heap(duration));
        tasks_.finish();
    }

    std::vector<heap_sample> samples() && { return std::move(samples_); }

  private:
    asio::awaitable<void> acquire_and_release(std::size_t worker)
    {
        while (!stopping_)
        {
            ++pairs_;
            std::string name = resource_of("refund", worker);
            lease held = co_await locks_.async_acquire(std::move(name), ttl);
            error_code unconfirmed; // The library repeats the release.
            auto token = asio::redirect_error(asio::use_awaitable, unconfirmed);
            co_await held.async_release(token);
        }
    }

    asio::awaitable<void> sample_heap(std::chrono::milliseconds duration)
    {
        asio::steady_timer timer{co_await asio::this_coro::executor};
        for (auto samples = duration / heap_sample_interval; samples > 0; --samples)
        {
            timer.expires_after(heap_sample_interval);
            co_await timer.async_wait(asio::use_awaitable);
            const std::chrono::duration<double> passed = clock::now() - began_;
            const auto growth = static_cast<double>(test::heap_of_this_thread() - heap_before_);
            samples_.push_back({passed.count(), growth / mebibyte, pairs_});
        }
        stopping_ = true;
    }

    using clock = std::chrono::steady_clock;

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
    bool stopping_ = false;
    clock::time_point began_{};
    std::int64_t heap_before_ = 0;
    std::size_t pairs_ = 0;
    std::vector<heap_sample> samples_;
};

/// The growth of the heap in one run.
struct heap_growth
{
    double highest;         // In MiB.
    double after_giving_up; // From given_up_after until the masters resume.
    double after_resuming;  // At the end.
    double per_pair; // Highest growth divided by the pairs begun while the connections were open, in bytes.
    series line;
};

heap_growth run(std::span<test::server> masters, std::size_t hung)
{
    busy_client client{masters};
    std::ranges::for_each(masters.first(hung), &test::server::stop);
    client.work_for(hung_for);
    std::ranges::for_each(masters.first(hung), &test::server::resume);
    client.work_for(resumed_for);
    const std::vector<heap_sample> samples = std::move(client).samples();
    const auto last_before = [&](std::chrono::duration<double> end)
    { return *std::prev(std::ranges::upper_bound(samples, end.count(), {}, &heap_sample::seconds)); };
    const double highest = std::ranges::max_element(samples, {}, &heap_sample::growth)->growth;
    const auto unanswered = static_cast<double>(last_before(config{}.response_timeout).pairs);
    heap_growth growth_of_hung{
        highest,
        last_before(hung_for).growth - last_before(given_up_after).growth,
        samples.back().growth,
        highest * mebibyte / unanswered,
        {}};
    for (const heap_sample& each : samples)
    {
        growth_of_hung.line.points.emplace_back(each.seconds, each.growth);
    }
    return growth_of_hung;
}

} // namespace

figure_group measure_memory(std::span<test::server> masters, const options&, progress& status)
{
    figure_group group{fmt::format("Heap of a client, {} workers", workers), "all healthy", {}};
    plot growth{"memory", "Growth of a client's heap under load", "time [s]", "growth [MiB]", false, false,
                {}};
    status.show("the heap of a client, all healthy");
    heap_growth healthy = run(masters, 0);
    healthy.line.name = "all healthy";
    growth.lines.push_back(std::move(healthy.line));
    const std::size_t minority = masters.size() - quorum_of(masters.size());
    for (std::size_t count = 1; count <= std::min(minority, max_hung); ++count)
    {
        status.show(fmt::format("the heap of a client, {} of {} hung", count, masters.size()));
        heap_growth growth_of_hung = run(masters, count);
        const std::string hung = fmt::format(", {} hung", count);
        add({{"highest growth", "MiB", healthy.highest, growth_of_hung.highest, {}, {}},
             {"growth per pair of the first second", "byte", {}, growth_of_hung.per_pair, {}, {}},
             {"growth after disconnecting",
              "MiB",
              healthy.after_giving_up,
              growth_of_hung.after_giving_up,
              {},
              max_growth_mib},
             {"growth after reconnecting",
              "MiB",
              healthy.after_resuming,
              growth_of_hung.after_resuming,
              {},
              max_retained_mib}},
            "", hung, group.figures);
        growth_of_hung.line.name = "redlock" + hung;
        growth.lines.push_back(std::move(growth_of_hung.line));
    }
    group.plots.push_back(std::move(growth));
    group.notes.push_back(fmt::format(
        "The client keeps a record of each command that a master has not answered. After "
        "response_timeout ({}) it closes the connection, and the records stop growing. At most "
        "max_outstanding_keys ({}) releases per master are outstanding.",
        config{}.response_timeout, config{}.max_outstanding_keys));
    return group;
}

} // namespace redlock::bench
