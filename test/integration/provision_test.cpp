// SPDX-License-Identifier: BSL-1.0
// Provisioning on real masters: what it writes, what it refuses, and how an interrupted run is continued.
#include "integration/fixture.hpp"

#include "support/overheard.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <thread>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

constexpr const char* guard = "lock::redlock-guard";
constexpr const char* members = "lock::redlock-members";
constexpr const char* fence = "lock::redlock-fence";

// No test waits for this long: the run is interrupted first.
constexpr auto endless_ttl = 600'000ms;

/// The result of a run.
struct provisioned
{
    error_code error;
    redlock::provision_report report;
};

/// A run in progress: its report, and the promise of its result.
struct provision_run
{
    std::promise<provisioned> promise;
    redlock::provision_report report;
    asio::cancellation_signal signal;
};

/// Starts a run that can be cancelled by the signal, on the loop's thread.
std::shared_ptr<provision_run>
start_provision(event_loop& loop, const redlock::config& options, provision_options wanted)
{
    auto run = std::make_shared<provision_run>();
    redlock::async_provision(
        loop.context(), options, wanted, run->report,
        asio::bind_cancellation_slot(
            run->signal.slot(),
            [run](error_code error)
            {
                overhear(run->report.to_string(), "a report of provisioning");
                run->promise.set_value({error, run->report});
            }));
    return run;
}

provisioned provision(const redlock::config& options, provision_options wanted)
{
    event_loop loop;
    return take(start_provision(loop, options, wanted)->promise.get_future(), "provisioning");
}

/// Starts servers whose documented user has the right that only provisioning needs.
std::vector<server> start_provisionable(std::size_t count, server_options options = {})
{
    std::vector<server> servers = start_servers(count, std::move(options));
    for (server& each : servers)
    {
        change_user(each, {"+hvals"});
    }
    return servers;
}

std::string value_of(server& at, const char* key)
{
    return at.command({"GET", key}).text;
}

/// Returns a word of the marker: 2 the group, 3 the seat, 7 the state, 9 the nonce.
std::string marker_word(server& at, std::size_t index)
{
    const std::vector<std::string> words = words_of(value_of(at, guard));
    return index < words.size() ? words[index] : std::string{};
}

bool all_have_state(std::vector<server>& servers, std::string_view state)
{
    return std::all_of(
        servers.begin(), servers.end(), [state](server& each) { return marker_word(each, 7) == state; });
}

bool are_empty(std::vector<server>& servers)
{
    return std::all_of(
        servers.begin(), servers.end(), [](server& each) { return each.command({"DBSIZE"}) == 0; });
}

/// Returns the report of an earlier run, for the next one to overwrite.
redlock::provision_report used_report()
{
    redlock::provision_report report;
    report.result = errc::invalid_config;
    report.outcome = provision_outcome::complete;
    report.group = "an earlier one";
    report.floor = 7;
    report.masters.resize(7);
    report.advice = "an earlier one";
    report.argument_error = "an earlier one";
    return report;
}

std::vector<provision_finding> findings(const redlock::provision_report& of)
{
    std::vector<provision_finding> found;
    for (const provisioned_master& each : of.masters)
    {
        found.push_back(each.found);
    }
    return found;
}

/// Checks that all masters are armed members of one group. Each of several runs at once arms masters with its own floor.
void check_group(std::vector<server>& servers, const redlock::provision_report& report, std::size_t runs = 1)
{
    std::set<std::string> nonces;
    std::set<std::string> seats;
    std::set<std::string> records;
    std::set<std::uint64_t> floors;
    for (server& each : servers)
    {
        const std::string text = value_of(each, guard);
        INFO(text);
        const std::vector<std::string> words = words_of(text);
        REQUIRE(words.size() == 11);
        CHECK(words[0] + ' ' + words[1] == "redlock 1");
        CHECK(words[2] == report.group);
        CHECK(words[4] == std::to_string(servers.size()));
        CHECK(words[7] == "armed");
        CHECK(words[8] == "new");
        CHECK(
            each.command({"INFO", "replication"}).text.find("master_replid:" + words[10]) !=
            std::string::npos);
        floors.insert(std::stoull(each.command({"HGET", fence, "floor"}).text));
        seats.insert(words[3]);
        nonces.insert(words[9]);
        records.insert(value_of(each, members));
    }
    CHECK(floors.size() <= runs);
    CHECK(*floors.rbegin() == report.floor);
    CHECK(seats.size() == servers.size());
    CHECK(nonces.size() == servers.size());
    REQUIRE(records.size() == 1);
    CHECK(std::any_of(
        report.masters.begin(), report.masters.end(),
        [start = report.group + " 1=", &record = *records.begin()](const provisioned_master& each)
        { return record.starts_with(start + each.name + ' '); }));
}

} // namespace

TEST_CASE(
    "provisioning: masters without keys become a group, and a second run finds it complete", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    const redlock::config options = unhurried(servers);
    const provisioned first = provision(options, {.max_ttl = 50ms});
    INFO(first.report);
    REQUIRE_FALSE(first.error);
    CHECK_FALSE(first.report.result);
    CHECK(first.report.outcome == provision_outcome::provisioned);
    CHECK(first.report.floor == 1);
    CHECK(findings(first.report) == std::vector(3, provision_finding::armed));
    CHECK(first.report.masters[1].name == options.masters[1].name());
    check_group(servers, first.report);
    std::vector<std::string> names;
    for (const master& each : options.masters)
    {
        names.push_back(each.name());
    }
    std::sort(names.begin(), names.end()); // By seat.
    CHECK(names.at(std::stoul(marker_word(servers[2], 3)) - 1) == options.masters[2].name());
    CHECK(marker_word(servers[2], 5) == "50");
    CHECK(marker_word(servers[2], 6) == "clocks");
    CHECK(
        value_of(servers[0], members) ==
        first.report.group + " 1=" + names[0] + " 2=" + names[1] + " 3=" + names[2]);

    const std::string before = value_of(servers[1], guard);
    const provisioned second = provision(options, {.max_ttl = 50ms});
    INFO(second.report);
    CHECK_FALSE(second.error);
    CHECK(second.report.outcome == provision_outcome::complete);
    CHECK(second.report.group == first.report.group);
    CHECK(value_of(servers[1], guard) == before);
}

TEST_CASE("provisioning: clients in guarded mode can use the group", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    redlock::config options = unhurried(servers);
    options.guarded.emplace();
    event_log log{log_of::masters};
    redlock::config observed = options;
    observed.observer = log.observer();
    const provisioned got = provision(observed, {.max_ttl = 200ms});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    std::size_t quarantined = 0;
    std::size_t armed = 0;
    for (const redlock::event& each : log.events())
    {
        if (const auto* begun = std::get_if<master_quarantined>(&each))
        {
            CHECK(begun->index == quarantined++);
            CHECK(begun->name == options.masters[begun->index].name());
            CHECK(begun->why == incarnation_end::created);
        }
        if (const auto* ended = std::get_if<master_armed>(&each))
        {
            CHECK(quarantined == 3);
            ++armed;
            CHECK(ended->incarnation == marker_word(servers[ended->index], 9));
        }
    }
    CHECK(quarantined == 3);
    CHECK(armed == 3);

    options.node_timeout = 50ms;
    client one{options};
    acquired won = one.acquire("stock", {.ttl = 200ms, .wait = patience});
    INFO(won.report);
    REQUIRE_FALSE(won.error);
    CHECK(won.lease.fencing_token() > got.report.floor);
}

TEST_CASE("provisioning: the masters of a group may be given in any order the next time", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    REQUIRE_FALSE(provision(unhurried(servers), {.max_ttl = 50ms, .policy = arming_policy::by_hand}).error);
    CHECK(marker_word(servers[0], 6) == "operator");
    std::vector<redlock::master> reversed = addresses_of(servers);
    std::reverse(reversed.begin(), reversed.end());
    const provisioned again =
        provision(unhurried(reversed), {.max_ttl = 50ms, .policy = arming_policy::by_hand});
    INFO(again.report);
    CHECK_FALSE(again.error);
    CHECK(again.report.outcome == provision_outcome::complete);
}

TEST_CASE("provisioning: counters of an earlier group are continued on all masters", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    servers[1].command({"HSET", fence, "17", "4711", "floor", "12"});
    const provisioned got = provision(unhurried(servers), {.max_ttl = 50ms});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(got.report.floor == 4711);
    check_group(servers, got.report);
}

TEST_CASE("provisioning: a master that can't be a member is reported, and no master is changed", "[guarded]")
{
    struct misfit
    {
        provision_finding found;
        std::string detail;
        std::function<void(server&)> make;
    };
    const std::string of_others =
        "redlock 1 00000000000000aa 2 3 51 clocks armed new 00000000000000bb " + std::string(40, 'c');
    const misfit one = GENERATE_COPY(
        misfit{
            provision_finding::replica, "",
            [](server& at) {
                at.command({"REPLICAOF", "127.0.0.1", "1"});
            }},
        misfit{
            provision_finding::other_group,
            "its marker is \"redlock 1 00000000000000aa 2 3 51 clocks armed new\"",
            [of_others](server& at) {
                at.command({"SET", guard, of_others});
            }},
        misfit{
            provision_finding::unreadable, "its marker is \"redlock 2 of the future\"",
            [](server& at) {
                at.command({"SET", guard, "redlock 2 of the future"});
            }},
        misfit{
            provision_finding::unreadable, "one of its keys has another type",
            [](server& at) {
                at.command({"LPUSH", fence, "1"});
            }},
        misfit{
            provision_finding::unreadable, "one of its keys has another type",
            [](server& at) {
                at.command({"LPUSH", "lock::redlock-guard-before", "1"});
            }},
        misfit{
            provision_finding::other_database,
            "the marker of database 3 is \"redlock 1 00000000000000aa 2 3 51 clocks armed new\"",
            [of_others](server& at)
            {
                at.command({"SELECT", "3"});
                at.command({"SET", guard, of_others});
                at.command({"SELECT", "0"});
            }},
        misfit{provision_finding::evicts, "maxmemory-policy is allkeys-lru", [](server& at) {
                   at.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
               }});
    CAPTURE(to_string(one.found));
    std::vector<server> servers = start_provisionable(3);
    one.make(servers[1]);
    const auto keys = [&] { return servers[1].command({"DBSIZE"}).integer; };
    const std::int64_t keys_before = keys();
    const redlock::config options = unhurried(servers);
    const provisioned got = provision(options, {.max_ttl = 50ms});
    CHECK(keys() == keys_before);
    INFO(got.report);
    CHECK(got.error == errc::provisioning_failed);
    CHECK(got.report.result == errc::provisioning_failed);
    CHECK(got.report.outcome == provision_outcome::unchanged);
    CHECK(
        findings(got.report) ==
        std::vector{provision_finding::unmarked, one.found, provision_finding::unmarked});
    CHECK(got.report.masters[1].detail == one.detail);
    CHECK(got.report.to_string().starts_with(
        "provision: the masters weren't provisioned; no master was changed\n  " + options.masters[0].name()));
    CHECK(
        got.report.to_string().find(got.report.masters[1].name + ": " + std::string{to_string(one.found)}) !=
        std::string::npos);
    for (const std::size_t other : {0U, 2U})
    {
        CHECK(servers[other].command({"DBSIZE"}) == 0);
    }
}

TEST_CASE("provisioning: all masters must answer, and the one that doesn't is named", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    redlock::config options = unhurried(servers);
    SECTION("one that isn't running")
    {
        servers[2].kill();
        const provisioned got = provision(options, {.max_ttl = 50ms});
        INFO(got.report);
        CHECK(got.error == errc::provisioning_failed);
        CHECK(got.report.outcome == provision_outcome::unchanged);
        CHECK(got.report.masters[2].found == provision_finding::unknown);
        CHECK(got.report.masters[2].reason);
        CHECK_FALSE(got.report.masters[0].reason);
        servers.pop_back();
    }
    SECTION("one that hangs")
    {
        options.connect_timeout = 1s;
        servers[2].stop();
        const provisioned got = provision(options, {.max_ttl = 50ms});
        INFO(got.report);
        CHECK(got.error == errc::provisioning_failed);
        CHECK(got.report.masters[2].reason == master_errc::connect_timed_out);
        servers[2].resume();
    }
    CHECK(are_empty(servers));
}

TEST_CASE(
    "provisioning: two runs at once make one group, whatever the order of their masters",
    "[guarded][threads]")
{
    std::vector<server> servers = start_provisionable(3);
    std::vector<redlock::master> reversed = addresses_of(servers);
    std::reverse(reversed.begin(), reversed.end());
    event_loop one;
    event_loop other;
    const auto first = start_provision(one, unhurried(servers), {.max_ttl = 50ms});
    const auto second = start_provision(other, unhurried(reversed), {.max_ttl = 50ms});
    const provisioned of_first = take(first->promise.get_future(), "the first run");
    const provisioned of_second = take(second->promise.get_future(), "the second run");
    INFO(of_first.report);
    INFO(of_second.report);
    CHECK_FALSE(of_first.error);
    CHECK_FALSE(of_second.error);
    CHECK(of_first.report.group == of_second.report.group);
    const bool is_first = of_first.report.floor >= of_second.report.floor;
    check_group(servers, is_first ? of_first.report : of_second.report, 2);
}

TEST_CASE("provisioning: a run that was interrupted is continued by the next one", "[guarded][threads]")
{
    std::vector<server> servers = start_provisionable(3);
    const redlock::config options = unhurried(servers);
    {
        event_log log{log_of::masters};
        redlock::config observed = options;
        observed.observer = log.observer();
        event_loop loop;
        const auto interrupted = start_provision(loop, observed, {.max_ttl = endless_ttl});
        // The run knows later than the masters: when all of them have answered.
        log.wait_until(
            [](const std::vector<redlock::event>& events)
            {
                const auto is_quarantine = [](const redlock::event& each)
                { return std::holds_alternative<master_quarantined>(each); };
                return std::count_if(events.begin(), events.end(), is_quarantine) == 3;
            },
            "all masters are in quarantine");
        CHECK(all_have_state(servers, "quarantine"));
        SECTION("by its cancellation")
        {
            const auto type = GENERATE(
                asio::cancellation_type::terminal, asio::cancellation_type::partial,
                asio::cancellation_type::total);
            asio::post(loop.context(), [interrupted, type] { interrupted->signal.emit(type); });
            const provisioned got = take(interrupted->promise.get_future(), "a cancelled run");
            INFO(got.report);
            CHECK(got.error == asio::error::operation_aborted);
            CHECK(got.report.outcome == provision_outcome::unfinished);
            CHECK(findings(got.report) == std::vector(3, provision_finding::unfinished));
            CHECK(got.report.group == marker_word(servers[0], 2));
        }
        SECTION("by the end of its execution context") {}
    }
    const std::string group = marker_word(servers[0], 2);
    const std::string kept = marker_word(servers[0], 9);
    SECTION("and the masters are as it left them")
    {
        // Not even a run in another order or with another list would do.
        const provisioned other = provision(options, {.max_ttl = 50ms});
        CHECK(findings(other.report) == std::vector(3, provision_finding::other_run));
        CHECK(other.report.outcome == provision_outcome::unchanged);
    }
    SECTION("and a master was restarted and emptied meanwhile")
    {
        servers[1].restart();
        change_user(servers[1], {"+hvals"});
    }
    const provisioned got = provision(options, {.max_ttl = endless_ttl, .fresh = true});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(got.report.outcome == provision_outcome::provisioned);
    CHECK(got.report.group == group);
    CHECK(marker_word(servers[0], 9) == kept);
    check_group(servers, got.report);
}

TEST_CASE("provisioning: a run that has armed some masters only is continued, with a wait", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    const redlock::config options = unhurried(servers);
    const provisioned first = provision(options, {.max_ttl = 50ms});
    REQUIRE_FALSE(first.error);
    // As it was before it was armed.
    std::string text = value_of(servers[1], guard);
    text.replace(text.find("armed"), 5, "quarantine");
    servers[1].command({"SET", guard, text});
    servers[1].command({"DEL", fence});
    // A client may hold a lock on the others by now.
    servers[0].command({"HSET", fence, "3", "99"});
    servers[0].command({"SET", "lock:stock", "owner"});
    const std::uint64_t seconds =
        std::stoull(servers[0].command({"EVAL", "return redis.call('TIME')[1]", "0"}).text);
    const provisioned second = provision(options, {.max_ttl = 50ms, .fresh = true});
    INFO(second.report);
    REQUIRE_FALSE(second.error);
    CHECK(second.report.outcome == provision_outcome::provisioned);
    CHECK(second.report.group == first.report.group);
    // Two hours above the clocks.
    CHECK(second.report.floor >= (seconds + 7200) * 1'000'000);
    CHECK(servers[1].command({"HGET", fence, "floor"}) == std::to_string(second.report.floor));
    CHECK(all_have_state(servers, "armed"));
}

TEST_CASE("provisioning: the wait isn't skipped if there are keys in any database", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    const redlock::config options = unhurried(servers);
    const char* database = GENERATE("0", "5");
    servers[1].command({"SELECT", database});
    servers[1].command({"SET", "a key", "of another program"});
    servers[1].command({"SELECT", "0"});
    const provisioned refused = provision(options, {.max_ttl = 50ms, .fresh = true});
    INFO(refused.report);
    CHECK(refused.error == errc::provisioning_failed);
    CHECK(refused.report.outcome == provision_outcome::unchanged);
    CHECK(
        findings(refused.report) ==
        std::vector{provision_finding::unmarked, provision_finding::not_empty, provision_finding::unmarked});
    CHECK(servers[0].command({"DBSIZE"}) == 0);
    const provisioned with_wait = provision(options, {.max_ttl = 50ms});
    INFO(with_wait.report);
    CHECK_FALSE(with_wait.error);
    check_group(servers, with_wait.report);
}

TEST_CASE("provisioning: succeeds for the documented user with the commands of the guarded mode", "[guarded]")
{
    server_options least;
    least.as = user::least_allowed;
    std::vector<server> servers = start_provisionable(3, least);
    SECTION("and needs each of them")
    {
        const std::string command = GENERATE("hvals", "info", "select", "hset");
        CAPTURE(command);
        change_user(servers[1], {"-" + command});
        const provisioned got = provision(unhurried(servers), {.max_ttl = 50ms, .fresh = true});
        INFO(got.report);
        CHECK(got.error == errc::provisioning_failed);
        CHECK(got.report.masters[1].found == provision_finding::unknown);
        CHECK(got.report.masters[1].reason == master_errc::no_permission);
        CHECK(got.report.outcome == provision_outcome::unchanged);
        change_user(servers[1], {"+" + command});
    }
    const provisioned got = provision(unhurried(servers), {.max_ttl = 50ms, .fresh = true});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    check_group(servers, got.report);
}

TEST_CASE("provisioning: a database of its own, and a key prefix", "[guarded]")
{
    std::vector<server> servers = start_provisionable(1, server_options::plain());
    redlock::config options = unhurried({address_of(servers[0], 7)});
    options.key_prefix = "lock:tenant:";
    const provisioned got = provision(options, {.max_ttl = 50ms, .fresh = true});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(servers[0].command({"DBSIZE"}) == 0);
    servers[0].command({"SELECT", "7"});
    CHECK(value_of(servers[0], "lock:tenant::redlock-guard").starts_with("redlock 1 " + got.report.group));
    CHECK(
        value_of(servers[0], "lock:tenant::redlock-members") ==
        got.report.group + " 1=" + options.masters[0].name());
}

TEST_CASE("provisioning: invalid arguments are reported by the handler, and not within the call", "[guarded]")
{
    std::vector<server> servers = start_provisionable(1);
    redlock::config options = unhurried(servers);
    provision_options wanted{.max_ttl = 50ms};
    error_code expected = errc::invalid_ttl;
    std::string what;
    SECTION("no max_ttl")
    {
        wanted.max_ttl = 0ms;
        what = "a max_ttl of 0 ms can't be used: it must be from 1 to 3153600000000 ms (100 years)";
    }
    SECTION("a max_ttl that is too long")
    {
        wanted.max_ttl = std::chrono::hours{24 * 365 * 100} + 1ms;
        what =
            "a max_ttl of 3153600000001 ms can't be used: it must be from 1 to 3153600000000 ms (100 years)";
    }
    SECTION("no masters")
    {
        options.masters.clear();
        options.tls = {};
        expected = errc::invalid_config;
        what = "there are no masters: there must be 1 to 31";
    }
    SECTION("too many masters in both lists of a change")
    {
        for (int port = 1; options.masters.size() < 32; ++port)
        {
            options.masters.emplace_back(
                redlock::tcp_address{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)});
        }
        wanted.action = redlock::provision_action::change_group;
        wanted.leaving = 16;
        expected = errc::invalid_config;
        what = "there are 32 masters, 16 of which leave: both lists together may have 31";
    }
    asio::io_context io;
    redlock::provision_report report = used_report();
    std::optional<error_code> result;
    redlock::async_provision(io, options, wanted, report, [&](error_code error) { result = error; });
    CHECK_FALSE(result);
    io.run();
    REQUIRE(result);
    CHECK(*result == expected);
    CHECK(report.result == expected);
    CHECK(report.argument_error == what);
    CHECK(report.to_string() == "provision: " + what);
    CHECK(report.masters.empty());
    CHECK(report.group.empty());
    CHECK(report.floor == 0);
    CHECK(report.advice.empty());
    CHECK(are_empty(servers));
}

namespace
{

asio::awaitable<provision_outcome> provision_in_coroutine(const redlock::config& options)
{
    redlock::provision_report report;
    const asio::any_io_executor here = co_await asio::this_coro::executor;
    co_await redlock::async_provision(
        here, options, provision_options{.max_ttl = 50ms, .fresh = true}, report);
    co_await redlock::async_provision(
        here, options, provision_options{.max_ttl = 50ms, .fresh = true}, report, asio::use_awaitable);
    co_return report.outcome;
}

} // namespace

TEST_CASE("provisioning: can be used with futures and coroutines, and throws their errors", "[guarded]")
{
    std::vector<server> servers = start_provisionable(2);
    const redlock::config options = unhurried(servers);
    event_loop loop;
    SECTION("coroutines")
    {
        CHECK(loop.run(provision_in_coroutine(options)) == provision_outcome::complete);
    }
    SECTION("futures")
    {
        redlock::provision_report report = used_report();
        take(
            redlock::async_provision(
                loop.context(), options, {.max_ttl = 50ms, .fresh = true}, report, asio::use_future),
            "a future");
        CHECK(report.outcome == provision_outcome::provisioned);
        CHECK_FALSE(report.result);
        CHECK(report.argument_error.empty());
        CHECK(report.masters.size() == 2);
        servers[1].command({"DEL", guard});
        try
        {
            take(
                redlock::async_provision(
                    loop.context(), options, {.max_ttl = 50ms, .fresh = true}, report, asio::use_future),
                "another future");
            FAIL("no exception");
        }
        catch (const redlock::system_error& error)
        {
            CHECK(error.code() == errc::provisioning_failed);
        }
        CHECK(report.masters[1].found == provision_finding::in_service);
    }
}

TEST_CASE("provisioning: nothing is left running after it has completed", "[guarded]")
{
    std::vector<server> servers = start_provisionable(3);
    asio::io_context io;
    redlock::provision_report report;
    redlock::async_provision(
        io, unhurried(servers), {.max_ttl = 50ms, .fresh = true}, report, [](error_code) {});
    io.run(); // Returns when there is no work left.
    CHECK(report.outcome == provision_outcome::provisioned);
    for (server& each : servers)
    {
        // That of the test.
        CHECK(comes_true(each, [&] { return info_number(each, "clients", "connected_clients") == 1; }));
    }
}

} // namespace redlock::test
