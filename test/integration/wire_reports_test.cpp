// SPDX-License-Identifier: BSL-1.0
// The reports of clients, compared with the replies of real servers. See wire_watch.hpp.
#include "integration/wire_watch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;
using redlock::errc;
using redlock::master_errc;
using redlock::operation;
using redlock::vote;

namespace
{

using clients = std::vector<std::unique_ptr<watched_client>>;

/// Runs the work of three clients, each on its own thread.
void compete(wire_watch& watch, const std::function<void(watched_client&, int)>& work)
{
    clients all;
    for (int number = 0; number < 3; ++number)
    {
        all.push_back(std::make_unique<watched_client>(watch, number));
    }
    std::vector<std::future<void>> ended;
    for (int number = 0; number < 3; ++number)
    {
        ended.push_back(std::async(
            std::launch::async, [&, number] { work(*all[static_cast<std::size_t>(number)], number); }));
    }
    for (std::future<void>& each : ended)
    {
        take(std::move(each), "the work of a client");
    }
    for (const auto& each : all)
    {
        CHECK_FALSE(shut_down(each->locks()));
    }
}

std::string resource_of(int number)
{
    return "stock" + std::to_string(number % 2);
}

void use_once(watched_client& own, const std::string& resource)
{
    acquired won = own.acquire(resource, {.ttl = long_ttl, .wait = redlock::no_limit});
    own.inspect(resource);
    own.extend(won.lease);
    own.release(won.lease);
}

/// Three servers and one client.
struct one_client
{
    explicit one_client(std::chrono::milliseconds node_timeout = 20s) : own{watch, 1, node_timeout}
    {
        own.wait_for_masters();
    }

    server& at(std::size_t index) { return watch.servers()[index]; }
    /// Acquires without a limit: at a short node timeout, a loaded machine needs several rounds. Waits until the masters
    /// that weren't needed for the quorum have the key, too.
    redlock::lease win(const std::string& resource)
    {
        redlock::lease held = own.acquire(resource, {.ttl = long_ttl, .wait = redlock::no_limit}).lease;
        for (server& each : watch.servers())
        {
            while (each.command({"EXISTS", "lock:" + resource}) != 1)
            {
                std::this_thread::sleep_for(1ms);
            }
        }
        return held;
    }
    void set_rights(std::string_view rule) { change_user(at(0), {rule}); }
    void set(std::size_t master, std::string_view name, std::string_view value)
    {
        expect_ok(at(master).command({"CONFIG", "SET", name, value}));
    }

    wire_watch watch{3};
    watched_client own;
};

bool has_detail(const redlock::report& told, std::size_t master, std::string_view start)
{
    return told.masters()[master].detail.view().starts_with(start);
}

} // namespace

TEST_CASE("reports of clients that compete are what each master answered", "[plain]")
{
    wire_watch watch{GENERATE(3U, 5U)};
    compete(
        watch,
        [](watched_client& own, int)
        {
            for (int time = 0; time < 10; ++time)
            {
                acquired won = own.acquire(resource_of(time), {.ttl = long_ttl, .wait = redlock::no_limit});
                own.extend(won.lease);
                own.try_acquire(resource_of(time));
                own.try_acquire(resource_of(time + 1));
                own.inspect(resource_of(time + 1));
                own.release(won.lease);
            }
        });
    CHECK(watch.contradictions() == std::vector<std::string>{});
    CHECK(watch.rounds() > 3 * 10 * 4);
    CHECK(watch.questions() > 0);
    CHECK(watch.seen(operation::acquire, vote::granted) > 0);
    CHECK(watch.seen(operation::acquire, vote::denied) > 0);
    CHECK(watch.seen(operation::extend, vote::granted) > 0);
    CHECK(watch.seen(operation::release, vote::granted) > 0);
}

TEST_CASE("reports of clients whose connections break are what each master answered", "[plain]")
{
    wire_watch watch{3};
    compete(
        watch,
        [](watched_client& own, int number)
        {
            for (int time = 0; time < 10; ++time)
            {
                acquired won = own.acquire(resource_of(time), {.ttl = long_ttl, .wait = redlock::no_limit});
                const auto master = static_cast<std::size_t>(time + number) % 3;
                time % 2 == 0 ? own.way_to(master).reset_connections()
                              : own.way_to(master).close_connections();
                own.extend(won.lease);
                own.inspect(resource_of(time));
                own.try_acquire(resource_of(time + 1));
                own.way_to((master + 1) % 3).close_client_side_keep_server();
                own.release(won.lease);
            }
        });
    CHECK(watch.contradictions() == std::vector<std::string>{});
    CHECK(watch.rounds() > 3 * 10);
}

TEST_CASE("reports about keys of another type are what each master answered", "[plain]")
{
    one_client test;
    const auto replace = [&](const char* key)
    {
        for (const std::size_t master : {0U, 1U})
        {
            test.at(master).command({"DEL", key});
            REQUIRE(test.at(master).command({"RPUSH", key, "foreign"}) == 1);
        }
    };
    replace("lock:stock");
    CHECK(test.own.try_acquire("stock").error == errc::held_by_other);
    const redlock::inspection seen = test.own.inspect("stock");
    CHECK(seen.masters()[0].detail.view().starts_with("WRONGTYPE "));
    CHECK(seen.masters()[2].detail.view().empty());

    redlock::lease held = test.win("other");
    replace("lock:other");
    CHECK(test.own.extend(held).error);
    CHECK_FALSE(test.own.release(held).error);
    use_once(test.own, "third");
    CHECK(test.watch.contradictions() == std::vector<std::string>{});
    CHECK(test.watch.seen(operation::acquire, vote::denied) >= 2);
    CHECK(test.watch.seen(operation::extend, vote::denied) >= 2);
    CHECK(test.watch.seen(operation::release, vote::denied) >= 2);
}

TEST_CASE("reports of masters that refuse commands have the text of each", "[plain]")
{
    one_client test;
    redlock::lease held = test.win("held");
    test.set_rights("-set");
    test.set(1, "maxmemory", "1");
    const acquired lost = test.own.try_acquire("stock");
    CHECK(lost.error == errc::no_quorum);
    CHECK(has_detail(lost.report, 0, "NOPERM "));
    CHECK(has_detail(lost.report, 1, "OOM "));
    CHECK(test.watch.seen(operation::acquire, vote::failed, master_errc::no_permission) > 0);
    CHECK(test.watch.seen(operation::acquire, vote::failed, master_errc::out_of_memory) > 0);

    test.set_rights("-get"); // Refused inside the script.
    test.set(1, "maxmemory", "0");
    test.set(1, "min-replicas-to-write", "1");
    const finished not_extended = test.own.extend(held);
    CHECK(not_extended.error == errc::no_quorum);
    CHECK(has_detail(not_extended.report, 0, "ERR "));
    CHECK(has_detail(not_extended.report, 1, "NOREPLICAS "));
    test.set_rights("-eval");
    const redlock::inspection seen = test.own.inspect("held");
    CHECK(seen.masters()[0].reason == master_errc::no_permission);
    CHECK(seen.masters()[0].detail.view().starts_with("NOPERM "));
    CHECK(test.own.release(held).error == errc::unconfirmed);

    // No vote has a reason or a detail of the rounds before.
    test.set_rights("+@all");
    test.set(1, "min-replicas-to-write", "0");
    use_once(test.own, "free");
    CHECK(test.watch.contradictions() == std::vector<std::string>{});
    CHECK(test.watch.seen(operation::extend, vote::failed, master_errc::no_permission) > 0);
    CHECK(test.watch.seen(operation::extend, vote::failed, master_errc::no_replicas) > 0);
    CHECK(test.watch.seen(operation::release, vote::failed, master_errc::no_permission) > 0);
    CHECK(test.watch.seen(operation::release, vote::failed, master_errc::no_replicas) > 0);
}

TEST_CASE("reports of masters that have ended say that nothing was sent", "[plain]")
{
    one_client test;
    redlock::lease held = test.win("held");
    for (const std::size_t master : {0U, 1U})
    {
        test.at(master).kill();
        test.own.events().wait_for_down(master);
    }
    const acquired lost = test.own.try_acquire("stock");
    CHECK(lost.report.count(vote::unsent) == 2);
    CHECK(test.own.extend(held).report.count(vote::unsent) == 2);
    CHECK(test.own.inspect("stock").answered() == 1);
    CHECK(test.own.release(held).report.count(vote::unsent) == 2);
    for (const std::size_t master : {0U, 1U})
    {
        test.at(master).restart();
        test.own.events().wait_for_up(master, 2);
    }
    use_once(test.own, "free");
    CHECK(test.watch.contradictions() == std::vector<std::string>{});
}

TEST_CASE("reports of connections that break during a command don't claim an answer", "[plain]")
{
    one_client test;
    const auto on_both = [&](const std::function<void(proxy&)>& change)
    {
        change(test.own.way_to(0));
        change(test.own.way_to(1));
    };
    constexpr std::size_t times = 8;
    for (std::size_t time = 0; time < times; ++time)
    {
        const bool is_executed = time % 2 == 0;
        const bool is_reset = time % 4 < 2;
        CAPTURE(is_executed, is_reset);
        on_both([&](proxy& each) { is_executed ? each.hold_to_client() : each.hold_to_server(); });
        const auto cut = [&]
        { on_both([&](proxy& each) { is_reset ? each.reset_connections() : each.close_connections(); }); };
        const acquired lost = test.own.try_acquire("stock", {0, 1}, cut);
        CHECK(lost.error == errc::no_quorum);
        on_both([](proxy& each) { each.release_held(); });
        test.own.events().wait_for_up(0, time + 2);
        test.own.events().wait_for_up(1, time + 2);
        use_once(test.own, "stock");
    }
    CHECK(test.watch.seen(operation::acquire, vote::failed, master_errc::connection_lost) >= times);
    CHECK(test.watch.contradictions() == std::vector<std::string>{});
}

TEST_CASE("reports of masters that answer late have no part of their answers", "[plain]")
{
    one_client test{200ms};
    redlock::lease held = test.win("held");
    for (const std::size_t master : {0U, 1U})
    {
        test.at(master).stop();
    }
    CHECK(test.own.try_acquire("stock").report.count(vote::timed_out) >= 2);
    for (const std::size_t master : {0U, 1U})
    {
        test.at(master).resume();
        test.own.way_to(master).hold_to_client();
    }
    CHECK(test.own.extend(held).report.count(vote::timed_out) >= 2);
    CHECK(test.own.release(held).report.count(vote::timed_out) >= 2);
    for (const std::size_t master : {0U, 1U})
    {
        test.own.way_to(master).release_held();
    }
    use_once(test.own, "stock");
    CHECK(test.watch.contradictions() == std::vector<std::string>{});
    CHECK(test.watch.seen(operation::acquire, vote::timed_out, master_errc::timed_out) >= 2);
    CHECK(test.watch.seen(operation::extend, vote::timed_out, master_errc::timed_out) >= 2);
    CHECK(test.watch.seen(operation::release, vote::timed_out, master_errc::timed_out) >= 2);
}
