// SPDX-License-Identifier: BSL-1.0
// Operations cancelled at any point: they end with operation_aborted and leave no key.
#include "integration/fixture.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;

namespace
{

/// Three real servers, each with a proxy that can hold back its replies.
struct held_up_servers
{
    held_up_servers() : servers{start_servers(3, server_options::with_port())}
    {
        std::vector<redlock::master> masters;
        for (const server& each : servers)
        {
            proxies.push_back(std::make_unique<proxy>(each.port()));
            masters.push_back(address_behind(proxies.back()->port(), each));
        }
        options = unhurried(masters);
        options.probe_interval = 1h;
    }

    void hold()
    {
        for (const auto& each : proxies)
        {
            each->hold_to_client();
        }
    }
    void let_go()
    {
        for (const auto& each : proxies)
        {
            each->release_held();
        }
    }
    /// Waits until every server has run a command this many times.
    bool all_have_run(const char* command, long long times)
    {
        const std::string field = std::string{"cmdstat_"} + command;
        for (server& each : servers)
        {
            if (!comes_true(each, [&] { return info_number(each, "commandstats", field) >= times; }))
            {
                return false;
            }
        }
        return true;
    }
    bool all_become_empty()
    {
        for (server& each : servers)
        {
            if (!comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }))
            {
                return false;
            }
        }
        return true;
    }

    std::vector<server> servers;
    std::vector<std::unique_ptr<proxy>> proxies;
    redlock::config options;
};

/// A cancellation signal that is emitted on the executor of its handlers, as Asio requires, and the result to come.
class cancellable
{
  public:
    explicit cancellable(event_loop& loop) : loop_{loop} {}

    /// A handler with a cancellation slot, which records how it was called.
    auto handler()
    {
        const auto remember = [state = state_](redlock::error_code error, auto&&... lease)
        {
            state->leases += (0U + ... + (lease ? 1U : 0U));
            state->promise.set_value(error);
        };
        return asio::bind_cancellation_slot(state_->signal.slot(), remember);
    }
    void cancel(asio::cancellation_type type)
    {
        asio::post(loop_.context(), [state = state_, type] { state->signal.emit(type); });
    }
    redlock::error_code wait_for_end()
    {
        return take(state_->promise.get_future(), "an operation that was cancelled");
    }
    std::size_t leases() const { return state_->leases; }

  private:
    struct state
    {
        asio::cancellation_signal signal;
        std::promise<redlock::error_code> promise;
        std::size_t leases = 0;
    };

    event_loop& loop_;
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

asio::cancellation_type one_of_the_types()
{
    return GENERATE(
        asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total);
}

} // namespace

TEST_CASE(
    "an acquire that is cancelled after the masters have granted it leaves no key",
    "[scenario-21][scenario-22]")
{
    const asio::cancellation_type type = one_of_the_types();
    held_up_servers distant;
    client own{distant.options};
    own.wait_for_masters();
    distant.hold();
    cancellable acquire{own.loop()};
    own.locks().async_acquire("stock", long_ttl, acquire.handler());
    REQUIRE(distant.all_have_run("set", 1));
    for (server& each : distant.servers)
    {
        REQUIRE(each.command({"EXISTS", "lock:stock"}) == 1);
    }
    acquire.cancel(type);
    CHECK(acquire.wait_for_end() == aborted);
    CHECK(acquire.leases() == 0);
    // No answer has arrived yet: the keys are gone without one.
    CHECK(distant.all_become_empty());
    distant.let_go();
    CHECK_FALSE(own.try_acquire("stock", {.ttl = long_ttl}).error);
}

TEST_CASE("an acquire that is cancelled between two rounds ends at once", "[scenario-21]")
{
    std::vector<server> servers = start_servers(3);
    for (server& each : servers)
    {
        REQUIRE(each.command({"SET", "lock:stock", "another client"}) == "OK");
    }
    redlock::config options = unhurried(servers);
    options.retry_delay_min = 1h;
    options.retry_delay_max = 1h;
    client own{options};
    own.wait_for_masters();
    cancellable acquire{own.loop()};
    own.locks().async_acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit}, acquire.handler());
    own.events().wait_until(
        [](const auto& events)
        {
            return std::any_of(
                events.begin(), events.end(),
                [](const auto& each) { return std::holds_alternative<redlock::round_decided>(each); });
        },
        "the first round");
    acquire.cancel(one_of_the_types());
    CHECK(acquire.wait_for_end() == aborted);
}

TEST_CASE("an acquire that is cancelled while it waits for the connections ends at once", "[scenario-21]")
{
    std::vector<server> servers = start_servers(3);
    for (server& each : servers)
    {
        each.stop();
    }
    redlock::config options = unhurried(servers);
    options.connect_timeout = 1h;
    client own{options};
    cancellable acquire{own.loop()};
    own.locks().async_acquire("stock", long_ttl, acquire.handler());
    acquire.cancel(one_of_the_types());
    CHECK(acquire.wait_for_end() == aborted);
}

TEST_CASE("an acquire that is cancelled before it starts sends nothing", "[scenario-21]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers)};
    own.wait_for_masters();
    cancellable acquire{own.loop()};
    // Both in one handler on the manager's thread: nothing can be sent in between.
    asio::post(
        own.loop().context(),
        [&]
        {
            own.locks().async_acquire("stock", long_ttl, acquire.handler());
            acquire.cancel(asio::cancellation_type::total);
        });
    const redlock::error_code error = acquire.wait_for_end();
    CHECK((error == aborted || acquire.leases() == 1));
    CHECK(comes_true(servers[0], [&] { return servers[0].command({"DBSIZE"}) == 0; }));
}

TEST_CASE("acquires that are cancelled at any time leave no key", "[scenario-21]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers)};
    own.wait_for_masters();
    std::size_t cancelled = 0;
    for (int turns = 0; turns < 150; ++turns)
    {
        auto one = std::make_shared<cancellable>(own.loop());
        own.locks().async_acquire("stock" + std::to_string(turns), long_ttl, one->handler());
        // Lets the manager's thread run for a while, a little longer each time.
        for (int turn = 0; turn < turns % 30; ++turn)
        {
            std::promise<void> passed;
            asio::post(own.loop().context(), [&] { passed.set_value(); });
            take(passed.get_future(), "a turn");
        }
        one->cancel(asio::cancellation_type::terminal);
        const redlock::error_code error = one->wait_for_end();
        CHECK((!error || error == aborted));
        cancelled += error == aborted ? 1U : 0U;
        CHECK(one->leases() == (error ? 0U : 1U));
    }
    CHECK(cancelled > 0);
    for (server& each : servers)
    {
        CHECK(comes_true(each, [&] { return each.command({"DBSIZE"}) == 0; }));
    }
}

TEST_CASE("a cancelled release is carried out nevertheless", "[scenario-21]")
{
    held_up_servers distant;
    client own{distant.options};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    REQUIRE(distant.all_have_run("set", 1));
    for (const auto& each : distant.proxies)
    {
        each->hold_to_server();
    }
    cancellable release{own.loop()};
    lease.async_release(release.handler());
    release.cancel(one_of_the_types());
    CHECK(release.wait_for_end() == aborted);
    CHECK_FALSE(lease.valid());
    CHECK(distant.servers[0].command({"EXISTS", "lock:stock"}) == 1);
    distant.let_go();
    CHECK(distant.all_become_empty());
}

TEST_CASE("a cancelled extension leaves the lease valid, and a waiting one proceeds")
{
    held_up_servers distant;
    client own{distant.options};
    own.wait_for_masters();
    redlock::lease lease = own.win("stock");
    const auto before = lease.valid_until();
    distant.hold();
    cancellable extension{own.loop()};
    lease.async_extend(2 * long_ttl, extension.handler());
    std::future<finished> next = start_extend(lease, 3 * long_ttl);
    extension.cancel(one_of_the_types());
    CHECK(extension.wait_for_end() == aborted);
    CHECK(lease.valid());
    distant.let_go();
    CHECK_FALSE(take(std::move(next), "the next extension").error);
    CHECK(lease.valid_until() > before + 2 * long_ttl - patience);
}

TEST_CASE("a cancelled shutdown continues without its caller")
{
    held_up_servers distant;
    client own{distant.options};
    own.wait_for_masters();
    const redlock::lease lease = own.win("stock");
    REQUIRE(distant.all_have_run("set", 1));
    distant.hold();
    cancellable shutdown{own.loop()};
    own.locks().async_shutdown(shutdown.handler());
    shutdown.cancel(one_of_the_types());
    CHECK(shutdown.wait_for_end() == aborted);
    CHECK(distant.all_become_empty());
    distant.let_go();
    CHECK(own.try_acquire("s", {.ttl = long_ttl}).error == errc::closed);
    CHECK(shut_down(own.locks()) == errc::closed);
}

namespace
{

using namespace asio::experimental::awaitable_operators;

/// True if the timer completed first.
asio::awaitable<bool> acquire_or_give_up(redlock::lock_manager& locks)
{
    asio::steady_timer timer{co_await asio::this_coro::executor, 50ms};
    const redlock::acquire_options options{.ttl = long_ttl, .wait = redlock::no_limit};
    std::variant<redlock::lease, std::monostate> first = co_await (
        locks.async_acquire("stock", options, asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
    co_return first.index() == 1;
}

} // namespace

TEST_CASE("an acquire that loses a race against a timer leaves no key", "[scenario-21]")
{
    held_up_servers distant;
    client own{distant.options};
    own.wait_for_masters();
    distant.hold();
    CHECK(own.loop().run(acquire_or_give_up(own.locks())));
    REQUIRE(distant.all_have_run("set", 1));
    CHECK(distant.all_become_empty());
    distant.let_go();
    CHECK_FALSE(own.loop().run(acquire_or_give_up(own.locks())));
    CHECK(distant.all_become_empty());
}
