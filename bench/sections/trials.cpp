// SPDX-License-Identifier: BSL-1.0
// Leases with automatic extension while masters are restarted or hang, and releases that race extensions.
#include "harness/redlock_client.hpp"
#include "sections/sections.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
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
using namespace std::chrono_literals;

constexpr std::chrono::seconds max_trial{60};
constexpr std::size_t concurrent_races = 50;

/// Two clients on a separate thread. The calling thread kills the masters.
class client_pair
{
  public:
    explicit client_pair(std::span<const test::server> masters)
        : locks{pool_, config_for(masters)}, competitor{pool_, config_for(masters)}
    {
    }
    client_pair(const client_pair&) = delete;
    client_pair& operator=(const client_pair&) = delete;
    ~client_pair()
    {
        pool_.stop();
        pool_.join();
    }

    /// Starts a coroutine on that thread.
    template <class T>
    std::future<T> start(asio::awaitable<T> work)
    {
        return asio::co_spawn(pool_, std::move(work), asio::use_future);
    }

  private:
    asio::thread_pool pool_{1};

  public:
    lock_manager locks;
    lock_manager competitor;
};

template <class T>
T get_within(std::future<T> result, std::string_view what, std::chrono::seconds time_limit = max_trial)
{
    if (result.wait_for(time_limit) != std::future_status::ready)
    {
        throw std::runtime_error{fmt::format("{} did not happen within {} s", what, time_limit.count())};
    }
    return result.get();
}

/// Waits until this owner holds the key on this master. Returns how long that took.
std::chrono::nanoseconds await_owner(test::server& on, const std::string& key, const std::string& owner)
{
    const auto began = std::chrono::steady_clock::now();
    while (!(on.command({"GET", key}) == owner))
    {
        if (std::chrono::steady_clock::now() - began > max_trial)
        {
            throw std::runtime_error{fmt::format("{} did not reappear on a master within a minute", key)};
        }
        on.command({"BLPOP", "nothing:is:here", "0.01"});
    }
    return std::chrono::steady_clock::now() - began;
}

std::size_t keys_on(std::span<test::server> masters)
{
    std::size_t count = 0;
    for (test::server& master : masters)
    {
        count += static_cast<std::size_t>(master.command({"DBSIZE"}).integer);
    }
    return count;
}

// ---- Masters that are killed and come back empty -----------------------------------------------------------

/// What the holder and its competitor observed.
struct rolling_record
{
    std::atomic<bool> finish{false};
    std::promise<std::string> owner;
    std::chrono::nanoseconds min_validity = 1h;
    std::size_t invalid_samples = 0;
    std::size_t competitor_tries = 0;
    std::size_t competitor_grants = 0; // While the holder had the lease.
};

asio::awaitable<error_code> hold(client_pair& clients, rolling_record& record)
{
    auto body = [&record](lease& held) -> asio::awaitable<void>
    {
        record.owner.set_value(std::string{held.owner_id()});
        asio::steady_timer pause{co_await asio::this_coro::executor};
        while (!record.finish)
        {
            record.min_validity = std::min<std::chrono::nanoseconds>(record.min_validity, held.remaining());
            record.invalid_samples += held.valid() ? 0 : 1;
            pause.expires_after(5ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    };
    const keep_options options{.ttl = 2s, .max_hold = redlock::no_limit};
    error_code result;
    try
    {
        co_await clients.locks.async_with_lock("trial:rolling", options, body);
    }
    catch (const system_error& problem)
    {
        result = problem.code();
    }
    co_return result;
}

asio::awaitable<void> try_repeatedly(client_pair& clients, rolling_record& record)
{
    asio::steady_timer pause{co_await asio::this_coro::executor};
    while (!record.finish)
    {
        error_code result;
        const try_options options{.ttl = 2s};
        auto token = asio::redirect_error(asio::use_awaitable, result);
        const lease got = co_await clients.competitor.async_try_acquire("trial:rolling", options, token);
        ++record.competitor_tries;
        // After `finish` the holder may have released, so a grant isn't counted.
        record.competitor_grants += !result && !record.finish ? 1 : 0;
        pause.expires_after(20ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

void rolling_restarts(
    std::span<test::server> masters, std::chrono::seconds duration, progress& status,
    std::vector<figure>& out)
{
    client_pair clients{masters};
    rolling_record record;
    std::future<error_code> job = clients.start(hold(clients, record));
    const std::string owner = get_within(record.owner.get_future(), "the start of the job");
    std::future<void> competitor = clients.start(try_repeatedly(clients, record));
    std::size_t restarts = 0;
    std::chrono::nanoseconds max_recovery{0};
    for (test::server& each : masters)
    {
        await_owner(each, "lock:trial:rolling", owner);
    }
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t next = 0; std::chrono::steady_clock::now() - began < duration; ++next)
    {
        status.show(
            fmt::format("a job of {} s with a ttl of 2 s: restart {}", duration.count(), restarts + 1));
        test::server& master = masters[next % masters.size()];
        master.kill();
        master.restart();
        max_recovery = std::max(max_recovery, await_owner(master, "lock:trial:rolling", owner));
        ++restarts;
    }
    record.finish = true;
    const error_code ended = get_within(std::move(job), "the end of the job");
    get_within(std::move(competitor), "the end of the competitor");
    const acquire_options after{.ttl = 2s, .wait = 10s};
    const lease got = get_within(
        clients.competitor.async_acquire("trial:rolling", after, asio::use_future),
        "the grant to the competitor");
    const auto add = [&](std::string name, std::string unit, double value, std::optional<double> goal = {}) {
        out.push_back({std::move(name), std::move(unit), {}, value, {}, goal});
    };
    add("masters killed and restarted empty", "", static_cast<double>(restarts));
    add("longest recovery of a key after a restart", "s",
        std::chrono::duration<double>{max_recovery}.count());
    add("shortest remaining validity", "s", std::chrono::duration<double>{record.min_validity}.count());
    add("the job lost its lease", "", ended || record.invalid_samples > 0 ? 1 : 0, 0);
    add("attempts of a competitor meanwhile", "", static_cast<double>(record.competitor_tries));
    add("attempts granted", "", static_cast<double>(record.competitor_grants), 0);
    add("competitor refused after the release", "", got.valid() ? 0 : 1, 0);
}

// ---- Masters that hang -------------------------------------------------------------------------------------

/// Holds the lease until it is lost. Returns the remaining validity when the body was cancelled.
asio::awaitable<std::chrono::nanoseconds> hold_until_lost(client_pair& clients, std::promise<void>& begun)
{
    std::chrono::nanoseconds left{0};
    auto body = [&](lease& held) -> asio::awaitable<void>
    {
        begun.set_value();
        asio::steady_timer forever{co_await asio::this_coro::executor, asio::steady_timer::time_point::max()};
        error_code cancelled;
        co_await forever.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        left = held.valid_until() - clock::now();
    };
    const keep_options options{.ttl = 3s, .max_hold = redlock::no_limit, .stop_margin = 1s};
    try
    {
        co_await clients.locks.async_with_lock("trial:hung", options, body);
    }
    catch (const system_error& problem)
    {
        if (problem.code() != errc::lease_lost)
        {
            throw;
        }
    }
    co_return left;
}

void hung_quorum(
    std::span<test::server> masters, std::size_t runs, progress& status, std::vector<figure>& out)
{
    client_pair clients{masters};
    std::vector<double> margins;
    for (std::size_t run = 0; run < runs; ++run)
    {
        status.show(fmt::format("a quorum of masters hangs: run {} of {}", run + 1, runs));
        std::promise<void> begun;
        auto left = clients.start(hold_until_lost(clients, begun));
        get_within(begun.get_future(), "the start of the body");
        const std::size_t quorum = quorum_of(masters.size());
        for (std::size_t master = 0; master < quorum; ++master)
        {
            masters[(run + master) % masters.size()].stop();
        }
        margins.push_back(
            std::chrono::duration<double, std::milli>{get_within(std::move(left), "the loss")}.count());
        for (std::size_t master = 0; master < quorum; ++master)
        {
            masters[(run + master) % masters.size()].resume();
        }
    }
    const auto late = std::count_if(margins.begin(), margins.end(), [](double left) { return left <= 0; });
    const double min_margin = *std::min_element(margins.begin(), margins.end());
    const auto name = fmt::format("bodies cancelled after valid_until, of {} runs", runs);
    out.push_back({name, "", {}, static_cast<double>(late), {}, 0.0});
    out.push_back({"shortest time left, stop_margin 1000 ms", "ms", {}, min_margin, {}, {}, margins});
}

// ---- Releases that race extensions -------------------------------------------------------------------------

struct race_record
{
    std::size_t begun = 0;
    std::size_t extended = 0;
    std::size_t false_losses = 0;
};

asio::awaitable<void> race(client_pair& clients, std::size_t count, race_record& record)
{
    while (record.begun < count)
    {
        const std::size_t number = record.begun++;
        std::string name = "trial:race:" + std::to_string(number);
        const acquire_options options{.ttl = 30s, .wait = 60s};
        lease held = co_await clients.locks.async_acquire(std::move(name), options);
        auto count_extension = [&record](error_code result)
        {
            record.extended += !result ? 1 : 0;
            record.false_losses += result == errc::lease_lost ? 1 : 0;
        };
        held.async_extend(60s, count_extension);
        // Every third extension has up to 300 us to be sent before the release, the others none.
        if (number % 3 == 1)
        {
            asio::steady_timer delay{
                co_await asio::this_coro::executor, std::chrono::microseconds{number % 300}};
            co_await delay.async_wait(asio::use_awaitable);
        }
        co_await release(held); // Keys that remain are counted at the end.
    }
}

void race_releases(
    std::span<test::server> masters, std::size_t count, progress& status, std::vector<figure>& out)
{
    status.show(fmt::format("{} releases race extensions", count));
    for (test::server& master : masters)
    {
        master.command({"FLUSHALL"});
    }
    client_pair clients{masters};
    race_record record;
    std::vector<std::future<void>> workers;
    for (std::size_t worker = 0; worker < concurrent_races; ++worker)
    {
        workers.push_back(clients.start(race(clients, count, record)));
    }
    for (std::future<void>& worker : workers)
    {
        get_within(std::move(worker), "the races", 600s);
    }
    get_within(clients.start(shut_down(clients.locks)), "the shutdown");
    const auto add = [&](std::string name, double value, std::optional<double> goal = {}) {
        out.push_back({std::move(name), "", {}, value, {}, goal});
    };
    add(fmt::format("extensions confirmed in {} races", count), static_cast<double>(record.extended));
    add("false losses", static_cast<double>(record.false_losses), 0);
    add("keys left", static_cast<double>(keys_on(masters)), 0);
}

} // namespace

figure_group run_trials(std::span<test::server> masters, const options& settings, progress& status)
{
    figure_group group{"Trials of leases with automatic extension", "", {}};
    rolling_restarts(masters, settings.trials.rolling, status, group.figures);
    hung_quorum(masters, settings.trials.hung_runs, status, group.figures);
    race_releases(masters, settings.trials.races, status, group.figures);
    return group;
}

} // namespace redlock::bench
