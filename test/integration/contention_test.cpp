// SPDX-License-Identifier: BSL-1.0
// Many clients compete for few resources while masters are killed and restarted: no update of guarded data is lost.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;

namespace
{

constexpr std::size_t resources = 10;
constexpr std::size_t clients_of_each = 100;

/// The number of grants that each resource needs; REDLOCK_TEST_GRANTS changes it.
long wanted_grants()
{
    const char* given = std::getenv("REDLOCK_TEST_GRANTS");
    return given != nullptr ? std::max(1L, std::strtol(given, nullptr, 10)) : 100L;
}

/// The guarded data: a counter that is read and later written, so that two concurrent holders lose an update. Atomic,
/// so that a failure is a wrong count and not undefined behaviour.
struct guarded
{
    std::atomic<long> counter{0};
    std::atomic<long> grants{0}; ///< How often a holder wrote it.
    std::atomic<long> lapsed{0}; ///< How often a holder found that its time was over, and didn't write.
};

struct fight
{
    std::array<guarded, resources> guards;
    long wanted = wanted_grants();
    std::atomic<bool> over{false};

    bool done() const
    {
        return std::all_of(
            guards.begin(), guards.end(), [&](const guarded& one) { return one.grants >= wanted; });
    }
};

/// Updates the guarded data, with pauses between reading and writing.
asio::awaitable<void> work_on(guarded& what, const redlock::lease& lease)
{
    const long before = what.counter.load();
    for (int pause = 0; pause < 3; ++pause)
    {
        co_await asio::post(asio::use_awaitable);
    }
    if (!lease.valid())
    {
        ++what.lapsed;
        co_return;
    }
    what.counter.store(before + 1);
    ++what.grants;
}

asio::awaitable<void> fight_for(redlock::lock_manager& locks, fight& shared, std::size_t index)
{
    guarded& what = shared.guards[index];
    const std::string resource = "resource " + std::to_string(index);
    const redlock::acquire_options options{.ttl = 10s, .wait = 1s};
    while (!shared.over)
    {
        redlock::error_code error;
        redlock::lease lease =
            co_await locks.async_acquire(resource, options, asio::redirect_error(asio::use_awaitable, error));
        if (error || shared.over)
        {
            continue;
        }
        co_await work_on(what, lease);
        co_await lease.async_release(asio::redirect_error(asio::use_awaitable, error));
    }
}

} // namespace

TEST_CASE(
    "a thousand clients lose no update while masters are killed and restarted with their data", "[threads]")
{
    server_options durable;
    durable.settings = {"--appendonly", "yes", "--appendfsync", "always"};
    std::vector<server> servers = start_servers(5, durable);
    fight shared;
    // The library can't distinguish them from clients of two processes: each loop has its own managers.
    std::vector<std::unique_ptr<client>> managers;
    for (int count = 0; count < 4; ++count)
    {
        redlock::config options = unhurried(servers);
        options.node_timeout = 2s;
        options.reconnect_delay_max = 100ms;
        managers.push_back(std::make_unique<client>(options, 1, log_of::masters));
        managers.back()->wait_for_masters();
    }
    std::vector<std::future<void>> clients;
    for (std::size_t number = 0; number < resources * clients_of_each; ++number)
    {
        client& with = *managers[number / resources % managers.size()];
        asio::awaitable<void> one = fight_for(with.locks(), shared, number % resources);
        clients.push_back(asio::co_spawn(with.loop().context(), std::move(one), asio::use_future));
    }
    const auto end = std::chrono::steady_clock::now() + 8 * patience;
    std::size_t restarts = 0;
    while ((!shared.done() || restarts < servers.size()) && std::chrono::steady_clock::now() < end)
    {
        // One at a time, so that a majority is always up.
        const std::size_t index = restarts % servers.size();
        servers[index].kill();
        servers[index].restart();
        ++restarts;
        for (const auto& each : managers)
        {
            each->events().wait_for_up(index, 1 + (restarts + 4) / servers.size());
        }
    }
    shared.over = true;
    for (std::future<void>& each : clients)
    {
        take(std::move(each), "the end of the fight");
    }
    for (const guarded& one : shared.guards)
    {
        CHECK(one.grants >= shared.wanted);
        CHECK(one.counter == one.grants);
    }
    CHECK(restarts >= servers.size());
}
