// SPDX-License-Identifier: BSL-1.0
// Users with few rights: the user from the documentation, and the effect of each missing right.
#include "integration/fixture.hpp"

#include "support/overheard.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <charconv>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

server_options least_allowed()
{
    server_options options;
    options.as = user::least_allowed;
    return options;
}

/// Returns how often a command was run ("calls") or refused ("rejected_calls"), from INFO commandstats.
long long times(server& at, std::string_view command, std::string_view field)
{
    const std::string text = at.command({"INFO", "commandstats"}).text;
    const std::size_t line = text.find("cmdstat_" + std::string{command} + ":");
    long long number = 0;
    if (line != std::string::npos)
    {
        const std::size_t found = text.find(field, line) + field.size() + 1;
        std::from_chars(text.data() + found, text.data() + text.size(), number);
    }
    return number;
}

/// Returns the commands and keys that the server's users were denied, each once, from ACL LOG.
std::vector<std::string> denied(server& at)
{
    std::vector<std::string> found;
    for (const reply& entry : at.command({"ACL", "LOG"}).elements)
    {
        const auto name = std::find_if(
            entry.elements.begin(), entry.elements.end(), [](const reply& one) { return one == "object"; });
        found.push_back(std::next(name)->text);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void inspect(lock_manager& locks)
{
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> ended = done->get_future();
    locks.async_inspect("stock", [done](error_code, const inspection&) { done->set_value(); });
    take(std::move(ended), "an inspection");
}

/// Releases the lease once another client waits for it, or was refused a command.
void wait_for_other(server& at, const config& options, redlock::lease& held)
{
    const long long before = times(at, "zadd", "calls");
    client other{options};
    std::future<acquired> waiting =
        start_acquire(other.locks(), "stock", {.ttl = long_ttl, .wait = std::chrono::seconds{5}});
    CHECK(
        comes_true(at, [&] { return !held || !denied(at).empty() || times(at, "zadd", "calls") > before; }));
    release(held);
    acquired theirs = take(std::move(waiting), "the waiting acquire");
    release(theirs.lease);
}

/// Runs every operation of a client and ignores the results.
void do_everything(server& at)
{
    {
        config options = unhurried({address_of(at, 3)});
        options.probe_interval = 10ms;
        const auto looks = [&] { return times(at, "time", "calls") + times(at, "time", "rejected_calls"); };
        const long long before = looks();
        client one{options};
        acquired got = one.try_acquire("stock", {.ttl = long_ttl});
        extend(got.lease, 2 * long_ttl);
        inspect(one.locks());
        wait_for_other(at, options, got.lease);
        const bool is_up = one.events().times_up(0) > 0;
        CHECK(comes_true(at, [&] { return !is_up || looks() > before; }));
    }
    // Keys that it had no right to release.
    expect_ok(at.command({"FLUSHALL"}));
}

std::vector<redlock::master_warning> risks_of(const std::vector<redlock::event>& events)
{
    std::vector<redlock::master_warning> found;
    for (const redlock::event& each : events)
    {
        if (const auto* risk = std::get_if<redlock::master_warning>(&each))
        {
            found.push_back(*risk);
        }
    }
    return found;
}

/// Acquires, extends and releases a resource, with this master's vote.
void check_locking(client& one, server& with)
{
    redlock::lease held = one.win("stock");
    REQUIRE(becomes(with, "lock:stock", held.owner_id()));
    const finished extended = extend(held, 2 * long_ttl);
    INFO(extended.report);
    CHECK_FALSE(extended.error);
    const finished released = release(held);
    INFO(released.report);
    CHECK_FALSE(released.error);
    CHECK_FALSE(released.report.already_gone());
    CHECK(goes_away(with, "lock:stock"));
}

/// Ends all connections except the test's own, and waits until the manager has reconnected.
void break_connection(client& one, server& at, std::size_t index)
{
    const std::size_t times_up = one.events().times_up(index);
    REQUIRE(at.command({"CLIENT", "KILL", "SKIPME", "yes"}) == 1);
    one.events().wait_for_up(index, times_up + 1);
}

/// True if each master that failed lacks the right. The others may not have answered before the round was decided.
bool all_that_failed_lack_permission(const redlock::report& given)
{
    const auto masters = given.masters();
    const auto lacking = std::count_if(
        masters.begin(), masters.end(),
        [](const master_report& each) { return each.reason == master_errc::no_permission; });
    return static_cast<std::size_t>(lacking) >= given.quorum() &&
           static_cast<std::size_t>(lacking) == given.count(vote::failed);
}

} // namespace

TEST_CASE("the documented ACL rule creates the documented user", "[own-servers]")
{
    server at{server_options::plain()};
    std::vector<std::string> words = documented_user("pasted-into-redis-cli");
    std::vector<std::string_view> line{"ACL", "SETUSER"};
    line.insert(line.end(), words.begin(), words.end());
    expect_ok(at.command(line));
    client one{unhurried({tcp_address{
        .host = "127.0.0.1",
        .port = static_cast<std::uint16_t>(at.port()),
        .username = words.front(),
        .password = "pasted-into-redis-cli"}})};
    one.wait_for_masters();
    check_locking(one, at);
    CHECK(denied(at).empty());
    CHECK(risks_of(one.events().events()).empty());
}

TEST_CASE("the documented user may run every command that a client needs, and nothing more")
{
    server_options options = least_allowed();
    options.program = GENERATE(from_range(server_programs()));
    CAPTURE(options.program);
    server at{options};
    do_everything(at);
    CHECK(denied(at).empty());
    for (const std::string& word : documented_user({}))
    {
        if (word.starts_with("+"))
        {
            const std::string command = word.substr(1);
            CAPTURE(command);
            change_user(at, {"-" + command});
            expect_ok(at.command({"ACL", "LOG", "RESET"}));
            do_everything(at);
            CHECK(denied(at) == std::vector<std::string>{command});
            change_user(at, {word});
        }
    }
}

TEST_CASE("a forbidden command that locks don't need is reported once per connection, and locks work")
{
    struct forbidden
    {
        std::string rule;
        redlock::risk what;
        std::string detail;
    };
    const auto [rule, what, detail] = GENERATE(
        forbidden{"-client|kill", risk::cannot_kill_stale_connections, "it forbids CLIENT ID or CLIENT KILL"},
        forbidden{"-info", risk::no_identity, "it doesn't answer INFO"});
    CAPTURE(rule);
    std::vector<server> servers = start_servers(3, least_allowed());
    change_user(servers[1], {rule});
    client one{unhurried(servers)};
    one.wait_for_masters();
    check_locking(one, servers[1]);
    break_connection(one, servers[1], 1);
    check_locking(one, servers[1]);
    // The risks of a connection are reported before the first lease on it.
    const std::vector<redlock::master_warning> told = risks_of(one.events().events());
    REQUIRE(told.size() == 2);
    for (const redlock::master_warning& each : told)
    {
        CHECK(each.index == 1);
        CHECK(each.name == address_of(servers[1]).name());
        CHECK(each.what == what);
        CHECK(each.detail == detail);
    }
}

TEST_CASE("a command of the queue that the user may not call is reported at the connect, and not any more "
          "when it may")
{
    const std::string command = GENERATE("ZREM", "HGET", "TIME");
    CAPTURE(command);
    server at{least_allowed()};
    change_user(at, {"-" + command});
    config options = unhurried({address_of(at)});
    options.probe_interval = 10ms;
    client one{options};
    one.wait_for_masters();
    check_locking(one, at);
    const auto limits = [&]
    {
        std::vector<std::string> found;
        for (const redlock::master_warning& each : risks_of(one.events().events()))
        {
            if (each.what == risk::limited_queue)
            {
                found.push_back(each.detail);
            }
        }
        return found;
    };
    REQUIRE(limits().size() == 1);
    CHECK(limits()[0].starts_with("it refuses " + command + " ("));
    change_user(at, {"+" + command});
    break_connection(one, at, 0);
    check_locking(one, at);
    CHECK(limits().size() == 1);
}

TEST_CASE("a master that forbids TIME isn't considered dead, and locks work")
{
    server at{least_allowed()};
    change_user(at, {"-time"});
    config options = unhurried({address_of(at)});
    options.probe_interval = 10ms;
    client one{options};
    one.wait_for_masters();
    check_locking(one, at);
    const long long refused =
        times(at, "time", "rejected_calls"); // Also by the trial of the queue's commands.
    CHECK(comes_true(at, [&] { return times(at, "time", "rejected_calls") > refused + 3; }));
    check_locking(one, at);
    CHECK(one.events().times_up(0) == 1);
    CHECK(one.events().downs_of(0).empty());
}

TEST_CASE("a master that forbids SCRIPT LOAD is sent the scripts in full, once, and locks work")
{
    server at{least_allowed()};
    change_user(at, {"-script|load"});
    client one{unhurried({address_of(at)})};
    one.wait_for_masters();
    check_locking(one, at);
    const long long sent = times(at, "eval", "calls");
    CHECK(sent == 3); // With the trial of the queue's commands.
    // The master has cached them now.
    check_locking(one, at);
    CHECK(times(at, "eval", "calls") == sent);
    CHECK(risks_of(one.events().events()).empty());
}

TEST_CASE("a master that forbids EVAL supports locks while it has the scripts cached, but no inspection")
{
    server at{least_allowed()};
    change_user(at, {"-eval"});
    client one{unhurried({address_of(at)})};
    one.wait_for_masters();
    check_locking(one, at);
    auto done = std::make_shared<std::promise<inspection>>();
    std::future<inspection> ended = done->get_future();
    one.locks().async_inspect(
        "stock", [done](error_code, inspection seen) { done->set_value(std::move(seen)); });
    const inspection seen = take(std::move(ended), "an inspection");
    CHECK(seen.masters().front().reason == master_errc::no_permission);

    redlock::lease held = one.win("stock");
    expect_ok(at.command({"SCRIPT", "FLUSH"}));
    CHECK(extend(held, 2 * long_ttl).error == errc::no_quorum);
    CHECK(release(held).error == errc::unconfirmed);
}

TEST_CASE("masters that forbid SET end an acquire at once, whatever its wait", "[scenario-24]")
{
    std::vector<server> servers = start_servers(3, least_allowed());
    change_user(servers[0], {"-set"});
    change_user(servers[2], {"-set"});
    config options = unhurried(servers);
    options.node_timeout = 2 * patience;
    client one{options};
    one.wait_for_masters();
    const acquired got = one.acquire("stock", {.ttl = long_ttl, .wait = redlock::no_limit});
    INFO(got.report);
    CHECK(got.error == errc::no_quorum);
    CHECK(got.report.rounds == 1);
    CHECK(all_that_failed_lack_permission(got.report));
    CHECK(got.report.masters()[0].detail.view().starts_with("NOPERM"));
    CHECK(goes_away(servers[1], "lock:stock"));
}

TEST_CASE("masters that forbid EVALSHA end an extension and a release at once", "[scenario-24]")
{
    std::vector<server> servers = start_servers(3, least_allowed());
    config options = unhurried(servers);
    options.node_timeout = 2 * patience;
    client one{options};
    one.wait_for_masters();
    redlock::lease held = one.win("stock");
    for (server& each : servers)
    {
        REQUIRE(becomes(each, "lock:stock", held.owner_id()));
        change_user(each, {"-evalsha"});
    }
    const finished extended = extend(held, 2 * long_ttl);
    INFO(extended.report);
    CHECK(extended.error == errc::no_quorum);
    CHECK(all_that_failed_lack_permission(extended.report));
    CHECK(held.valid());
    const finished released = release(held);
    INFO(released.report);
    CHECK(released.error == errc::unconfirmed);
    CHECK(all_that_failed_lack_permission(released.report));
}

TEST_CASE("all output of a client is searched for the passwords of its servers", "[scenario-52]")
{
    // main.cpp checks after every test that no password occurs. Here: that one would be noticed.
    const overheard before = overheard_so_far();
    server at{least_allowed()};
    client one{unhurried({address_of(at)})};
    one.wait_for_masters();
    check_locking(one, at);
    const overheard after = overheard_so_far();
    CHECK(after.secrets > before.secrets);
    CHECK(after.texts >= before.texts + one.events().events().size());
}

} // namespace redlock::test
