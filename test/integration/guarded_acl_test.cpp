// SPDX-License-Identifier: BSL-1.0
// Guarded mode as a user with few rights: the documented ones are enough, and each missing one is named.
#include "integration/guarded_masters.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

server_options least_allowed(const std::string& program)
{
    server_options options;
    options.program = program;
    options.as = user::least_allowed;
    return options;
}

/// Returns the commands and keys that the server's users were denied, from ACL LOG.
std::vector<std::string> refused_by(server& at)
{
    std::vector<std::string> found;
    for (const reply& entry : at.command({"ACL", "LOG"}).elements)
    {
        const auto name = std::find_if(
            entry.elements.begin(), entry.elements.end(), [](const reply& one) { return one == "object"; });
        found.push_back(std::next(name)->text);
    }
    return found;
}

/// Acquires, waits for, extends and releases a lock, so that all masters run each command.
void lock_and_wait(guarded_clients& clients, std::chrono::milliseconds ttl)
{
    for (int time = 0; time < 2; ++time)
    {
        lease held = clients.win(0, "stock", ttl);
        std::future<acquired> waiting = start_acquire(clients[1], "stock", {.ttl = ttl, .wait = patience});
        extend(held, ttl);
        release(held);
        acquired next = take(std::move(waiting), "a waiting acquire");
        INFO(next.report);
        CHECK(!next.error);
        release(next.lease);
    }
}

/// Where the lack of a right is named.
enum class named
{
    in_report,  ///< The vote of the master, with `no_permission`.
    in_warning, ///< `risk::arming_refused`, once it has to be armed.
};

struct missing
{
    std::string command;
    named where;
};

/// Takes the other databases of a server away from its user. Only Valkey 9 has permissions for databases; without them, all
/// selection is forbidden.
void hide_databases(server& at)
{
    const std::string name = at.username().empty() ? "default" : at.username();
    if (at.command({"ACL", "SETUSER", name, "resetdbs", "db=0"}) != "OK")
    {
        change_user(at, {"-select"});
    }
}

/// Shows what `hide_databases` has hidden.
void show_databases(server& at)
{
    const std::string name = at.username().empty() ? "default" : at.username();
    at.command({"ACL", "SETUSER", name, "alldbs"});
    change_user(at, {"+select"});
}

} // namespace

TEST_CASE("guarded: the documented user may do all that locking and arming need", "[own-servers][threads]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, least_allowed(program)};
    guarded_clients clients{masters.options(), 2};
    lock_and_wait(clients, masters.max_ttl());
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        const std::size_t before = clients.mark();
        expect_ok(masters.at(master).command({"FLUSHALL"}));
        clients.wait_for_armed(master, before);
    }
    lock_and_wait(clients, masters.max_ttl());
    for (server& each : masters.servers())
    {
        CHECK(refused_by(each) == std::vector<std::string>{});
    }
    const std::vector<event> events = clients.events().events();
    CHECK(std::none_of(
        events.begin(), events.end(),
        [](const event& each) { return std::holds_alternative<master_warning>(each); }));
}

TEST_CASE(
    "guarded: a master that forbids a command is named, and the others grant locks", "[own-servers][threads]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    const missing lack = GENERATE(
        missing{"hget", named::in_report}, missing{"info", named::in_report},
        missing{"time", named::in_report}, missing{"get", named::in_report},
        missing{"hset", named::in_report}, missing{"hmget", named::in_report},
        missing{"set", named::in_report}, missing{"hvals", named::in_warning},
        missing{"eval", named::in_warning}, missing{"select", named::in_warning});
    CAPTURE(program, lack.command);
    guarded_masters masters{3, 800ms, least_allowed(program)};
    change_user(masters.at(1), {"-" + lack.command});
    guarded_clients clients{masters.options(), 1};
    const bool is_named = comes_true(
        masters.at(0),
        [&]
        {
            acquired got = try_acquire(clients[0], "stock", {.ttl = masters.max_ttl()});
            const auto said = got.report.masters();
            release(got.lease);
            // The master that lacks the right may not have answered before the round was decided.
            return !got.error && said[0].vote == vote::granted && said[2].vote == vote::granted &&
                   (lack.where == named::in_warning || said[1].reason == master_errc::no_permission);
        });
    CHECK(is_named);
    if (lack.where == named::in_report)
    {
        return;
    }
    // One whose counters are needed for another one, or which has to be armed itself.
    const std::size_t emptied = lack.command == "hvals" ? 0 : 1;
    const std::size_t before = clients.mark();
    expect_ok(masters.at(emptied).command({"FLUSHALL"}));
    CHECK(comes_true(masters.at(2), [&] { return clients.is_arming_refused(emptied); }));
    if (emptied == 1)
    {
        // Two masters are left, and grant locks.
        lease held = clients.win(0, "stock", masters.max_ttl());
        CHECK(!release(held).error);
    }
    change_user(masters.at(1), {"+" + lack.command});
    clients.wait_for_armed(emptied, before);
}

TEST_CASE(
    "guarded: a master with a database that its user may not see isn't armed, so no old marker comes back",
    "[guarded][own-servers][threads][scenario-81]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, least_allowed(program)};
    guarded_clients clients{masters.options(), 1};
    lease first = clients.win(0, "stock", masters.max_ttl());
    CHECK(!release(first).error);
    server& swapped = masters.at(1);
    hide_databases(swapped);
    std::size_t before = clients.mark();
    expect_ok(swapped.command({"SWAPDB", "0", "5"}));
    CHECK(comes_true(masters.at(2), [&] { return clients.is_arming_refused(1); }));
    CHECK(swapped.command({"DBSIZE"}) == 0);
    lease held = clients.win(0, "stock", masters.max_ttl());
    CHECK(!release(held).error);

    show_databases(swapped);
    clients.wait_for_armed(1, before);
    before = clients.mark();
    expect_ok(swapped.command({"SWAPDB", "0", "5"}));
    clients.wait_for_quarantine(1, before); // The marker of before is gone.
    clients.wait_for_armed(1, before);
}

} // namespace redlock::test
