// SPDX-License-Identifier: BSL-1.0
// The change of a group on real masters: lists, losses, interrupted runs, and clients of both groups.
#include "integration/guarded_masters.hpp"

#include "support/overheard.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using places = std::vector<std::size_t>;

// Long enough for a node timeout, and short enough to be waited for.
constexpr auto changed_ttl = 1'000ms;
// Long enough for a run to be interrupted during its wait.
constexpr auto interrupted_ttl = 4'000ms;

constexpr provision_options to_another{.action = provision_action::change_group, .max_ttl = changed_ttl};

/// The result of a run.
struct changed
{
    error_code error;
    redlock::provision_report report;
};

/// A run in progress.
struct changing
{
    std::promise<changed> promise;
    redlock::provision_report report;
    asio::cancellation_signal signal;
};

std::shared_ptr<changing>
start_change(event_loop& loop, const redlock::config& options, const provision_options& wanted)
{
    auto run = std::make_shared<changing>();
    redlock::async_provision(
        loop.context(), options, wanted, run->report,
        asio::bind_cancellation_slot(
            run->signal.slot(),
            [run](error_code error)
            {
                overhear(run->report.to_string(), "a report of a change");
                run->promise.set_value({error, run->report});
            }));
    return run;
}

/// Servers, the first of which are a group.
class changing_masters
{
  public:
    changing_masters(
        std::size_t count, std::size_t old, provision_options made, const server_options& how = {})
        : servers_{start_servers(count, how)}
    {
        for (server& each : servers_)
        {
            change_user(each, {"+hvals"});
        }
        places first;
        for (std::size_t index = 0; index < old; ++index)
        {
            first.push_back(index);
        }
        made.fresh = true;
        const changed got = run(first, {}, made);
        INFO(got.report);
        REQUIRE_FALSE(got.error);
        group_ = got.report.group;
    }

    server& at(std::size_t master) { return servers_.at(master); }
    const std::string& group() const { return group_; }
    redlock::config listing(const places& masters) const
    {
        std::vector<redlock::master> addresses;
        for (const std::size_t each : masters)
        {
            addresses.push_back(address_of(servers_.at(each)));
        }
        return unhurried(addresses);
    }
    redlock::config of_client(const places& masters) const
    {
        redlock::config options = listing(masters);
        options.guarded.emplace();
        options.node_timeout = changed_ttl / 4;
        options.probe_interval = 100ms;
        return options;
    }
    /// Runs with the new list, and the masters that leave.
    changed run(const places& to, const places& leaving, provision_options wanted = to_another) const
    {
        event_loop loop;
        return take(start(loop, to, leaving, wanted)->promise.get_future(), "a change");
    }
    std::shared_ptr<changing>
    start(event_loop& loop, places to, const places& leaving, provision_options wanted = to_another) const
    {
        to.insert(to.end(), leaving.begin(), leaving.end());
        wanted.leaving = leaving.size();
        return start_change(loop, listing(to), wanted);
    }
    /// Runs until all of these are moved, and interrupts it. Returns the name of its group.
    std::string
    interrupt(const places& to, const places& leaving, const provision_options& wanted = to_another)
    {
        event_loop loop;
        const auto run = start(loop, to, leaving, wanted);
        REQUIRE(comes_true(at(to[0]), [&] { return are(to, "quarantine") && are(leaving, "retired"); }));
        asio::post(loop.context(), [run] { run->signal.emit(asio::cancellation_type::terminal); });
        const changed got = take(run->promise.get_future(), "an interrupted change");
        INFO(got.report);
        REQUIRE(got.error == asio::error::operation_aborted);
        CHECK(got.report.outcome == provision_outcome::unfinished);
        return got.report.group;
    }

    std::string marker(std::size_t master)
    {
        return at(master).command({"GET", guarded_masters::guard}).text;
    }
    bool are(const places& masters, const std::string& state)
    {
        return std::all_of(
            masters.begin(), masters.end(),
            [&](std::size_t each) { return marker(each).find(' ' + state + ' ') != std::string::npos; });
    }
    /// Checks that these masters are armed in the group of a report, and these have left it.
    void check(const redlock::provision_report& report, const places& armed, const places& left)
    {
        for (const std::size_t each : armed)
        {
            INFO(marker(each));
            CHECK(marker(each).starts_with("redlock 1 " + report.group + ' '));
            CHECK(are({each}, "armed"));
            CHECK(at(each).command({"GET", guarded_masters::members}).text.starts_with(report.group + " 1="));
        }
        for (const std::size_t each : left)
        {
            INFO(marker(each));
            CHECK(marker(each).starts_with("redlock 1 " + report.group + ' '));
            CHECK(are({each}, "retired"));
        }
    }

  private:
    std::vector<server> servers_;
    std::string group_;
};

constexpr provision_options short_lived{.max_ttl = changed_ttl};

/// Acquires, however many rounds that takes. Returns the token.
std::uint64_t token_of(client& one)
{
    acquired got = one.acquire("stock", {.ttl = changed_ttl * 4 / 5, .wait = patience});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    const std::uint64_t token = got.lease.fencing_token().value();
    release(got.lease);
    return token;
}

/// Returns whether one round succeeds.
bool wins_at_once(client& one)
{
    acquired got = one.acquire("stock", {.ttl = changed_ttl * 4 / 5, .wait = 0ms});
    if (!got.error)
    {
        release(got.lease);
    }
    return !got.error;
}

provision_finding found_at(const changed& of, std::size_t master)
{
    return of.report.masters.at(master).found;
}

} // namespace

TEST_CASE("change: tokens of a resource rise from one group to the next", "[guarded]")
{
    struct way
    {
        const char* name;
        places from;
        places to;
        places leaving;
        std::chrono::milliseconds max_ttl = changed_ttl;
        arming_policy policy = arming_policy::clocks;
    };
    const way one = GENERATE(
        way{"more masters", {0, 1, 2}, {0, 1, 2, 3, 4}, {}},
        way{"fewer masters", {0, 1, 2, 3, 4}, {4, 0, 2}, {1, 3}},
        way{"a longer max_ttl", {0, 1, 2}, {0, 1, 2}, {}, changed_ttl * 2},
        way{"another policy", {0, 1, 2}, {2, 1, 0}, {}, changed_ttl, arming_policy::by_hand},
        way{"another name", {0, 1, 2}, {3, 1, 2}, {0}}, way{"all of them", {0, 1, 2}, {3, 4, 5}, {0, 1, 2}});
    CAPTURE(one.name);
    server_options how;
    how.as = GENERATE(user::any, user::least_allowed);
    changing_masters masters{6, one.from.size(), short_lived, how};
    client before{masters.of_client(one.from)};
    const std::uint64_t old_token = token_of(before);
    provision_options wanted = to_another;
    wanted.max_ttl = one.max_ttl;
    wanted.policy = one.policy;
    const changed got = masters.run(one.to, one.leaving, wanted);
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(got.report.outcome == provision_outcome::provisioned);
    CHECK(got.report.group != masters.group());
    CHECK(got.report.floor >= old_token);
    masters.check(got.report, one.to, one.leaving);
    CHECK_FALSE(wins_at_once(before));
    client after{masters.of_client(one.to)};
    CHECK(token_of(after) > old_token);
    const changed again = masters.run(one.to, one.leaving, wanted);
    INFO(again.report);
    CHECK(again.report.outcome == provision_outcome::complete);
}

TEST_CASE("change: an old master that was down is named until it is moved", "[guarded]")
{
    changing_masters masters{4, 3, short_lived};
    masters.at(0).kill();
    const changed got = masters.run({1, 2, 3}, {0});
    INFO(got.report);
    CHECK(got.error == errc::provisioning_failed);
    CHECK(got.report.outcome == provision_outcome::incomplete);
    CHECK(found_at(got, 3) == provision_finding::unknown);
    CHECK(got.report.masters[3].reason);
    CHECK(got.report.advice.starts_with("run the same command again when " + got.report.masters[3].name));
    masters.check(got.report, {1, 2, 3}, {});
    SECTION("or is named as stopped")
    {
        provision_options wanted = to_another;
        wanted.stopped = 1;
        const changed last = masters.run({1, 2, 3}, {0}, wanted);
        INFO(last.report);
        CHECK_FALSE(last.error);
        CHECK(found_at(last, 3) == provision_finding::stopped);
        CHECK(last.report.outcome == provision_outcome::complete);
    }
    SECTION("when it is back")
    {
        masters.at(0).restart();
        change_user(masters.at(0), {"+hvals"});
        const std::string armed = masters.marker(1);
        const changed last = masters.run({1, 2, 3}, {0});
        INFO(last.report);
        CHECK_FALSE(last.error);
        CHECK(last.report.outcome == provision_outcome::provisioned);
        masters.check(got.report, {1, 2, 3}, {0});
        CHECK(masters.marker(1) == armed);
    }
}

TEST_CASE("change: masters whose memory is full are replaced", "[guarded]")
{
    changing_masters masters{6, 3, short_lived};
    for (const std::size_t full : {0U, 1U, 2U})
    {
        masters.at(full).command({"CONFIG", "SET", "maxmemory", "1"});
    }
    const changed got = masters.run({3, 4, 5}, {0, 1, 2});
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    masters.check(got.report, {3, 4, 5}, {0, 1, 2});
}

TEST_CASE("change: an old master that refuses to write is left out, and named", "[guarded]")
{
    changing_masters masters{6, 3, short_lived};
    masters.at(0).command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    const changed got = masters.run({3, 4, 5}, {0, 1, 2});
    INFO(got.report);
    CHECK(got.report.outcome == provision_outcome::incomplete);
    CHECK(found_at(got, 3) == provision_finding::unknown);
    CHECK(got.report.masters.at(3).detail.ends_with(" (DEL)"));
    masters.check(got.report, {3, 4, 5}, {1, 2});
}

TEST_CASE("change: what can't be done is refused, and nothing is moved", "[guarded]")
{
    changing_masters masters{6, 3, short_lived};
    places to{3, 4, 5};
    places leaving{0, 1, 2};
    std::function<void(const changed&)> check_report;
    SECTION("fewer than a quorum of the old masters answer")
    {
        masters.at(0).kill();
        masters.at(1).kill();
        check_report = [&](const changed& got)
        {
            CHECK(got.report.advice.starts_with(
                "too few masters of group " + masters.group() +
                " can be moved (1 of 3; 2 are needed): start the masters that give no answer"));
        };
    }
    SECTION("a new master doesn't")
    {
        masters.at(4).kill();
        check_report = [](const changed& got) { CHECK(found_at(got, 1) == provision_finding::unknown); };
    }
    SECTION("a new master refuses to write")
    {
        masters.at(4).command({"CONFIG", "SET", "min-replicas-to-write", "1"});
        check_report = [](const changed& got)
        {
            CHECK(found_at(got, 1) == provision_finding::unknown);
            CHECK(got.report.masters.at(1).reason == redlock::master_errc::no_replicas);
            CHECK(got.report.masters.at(1).detail.ends_with(" (HSET)"));
        };
    }
    SECTION("an old master isn't given")
    {
        leaving = {0, 1};
        check_report = [&](const changed& got)
        {
            CHECK(
                got.report.advice ==
                "group " + masters.group() + " has " + address_of(masters.at(2)).name() +
                    ", too: name each with --from, or with --stopped if it never comes back");
        };
    }
    SECTION("too few have counters")
    {
        masters.at(0).command({"DEL", guarded_masters::fence});
        masters.at(1).command({"DEL", guarded_masters::fence});
        check_report = [](const changed& got) {
            CHECK(
                got.report.advice.find(" have counters that count (1 of 3; 2 are needed)") !=
                std::string::npos);
        };
    }
    const changed got = masters.run(to, leaving);
    INFO(got.report);
    CHECK(got.error == errc::provisioning_failed);
    CHECK(got.report.outcome == provision_outcome::unchanged);
    check_report(got);
    CHECK(masters.marker(2).starts_with("redlock 1 " + masters.group()));
    CHECK(masters.are({2}, "armed"));
    CHECK(masters.marker(3).empty());
}

TEST_CASE("change: a run that was interrupted is continued, and another one is refused", "[guarded][threads]")
{
    changing_masters masters{5, 3, {.max_ttl = interrupted_ttl}};
    const std::string group = masters.interrupt({1, 2, 3}, {0});
    const std::string kept = masters.marker(1);
    client of_old_group{masters.of_client({0, 1, 2})};
    client of_new_group{masters.of_client({1, 2, 3})};
    CHECK_FALSE(wins_at_once(of_old_group));
    CHECK_FALSE(wins_at_once(of_new_group));
    const changed other = masters.run({1, 2, 4}, {0, 3});
    INFO(other.report);
    CHECK(other.error == errc::provisioning_failed);
    CHECK(other.report.outcome == provision_outcome::unchanged);
    CHECK(found_at(other, 0) == provision_finding::other_run);
    CHECK(other.report.masters[0].detail.find(group) != std::string::npos);
    CHECK(masters.marker(1) == kept);
    SECTION("and the same one isn't")
    {
        const changed got = masters.run({3, 2, 1}, {0});
        INFO(got.report);
        REQUIRE_FALSE(got.error);
        CHECK(got.report.group == group);
        // Above the clocks, because it doesn't know what was granted meanwhile.
        CHECK(got.report.floor > 1'000'000'000'000'000);
        masters.check(got.report, {1, 2, 3}, {0});
        CHECK(token_of(of_new_group) > got.report.floor);
    }
    SECTION("unless it takes the first one over")
    {
        provision_options wanted = to_another;
        wanted.takeover = true;
        const changed got = masters.run({1, 2, 4}, {0, 3}, wanted);
        INFO(got.report);
        REQUIRE_FALSE(got.error);
        CHECK(got.report.group != group);
        masters.check(got.report, {1, 2, 4}, {0, 3});
        client after{masters.of_client({1, 2, 4})};
        CHECK(token_of(after) > got.report.floor);
        CHECK(masters.run({1, 2, 3}, {0}).report.outcome == provision_outcome::unchanged);
    }
}

TEST_CASE(
    "change: a run that has ended without arming any master of a new group is taken over",
    "[guarded][threads]")
{
    std::vector<server> servers = start_servers(4);
    for (server& each : servers)
    {
        change_user(each, {"+hvals"});
    }
    const auto state_of = [](server& at) { return at.command({"GET", guarded_masters::guard}).text; };
    {
        event_loop loop;
        const std::vector<redlock::master> all = addresses_of(servers);
        const auto run =
            start_change(loop, unhurried({all[0], all[1], all[2]}), {.max_ttl = interrupted_ttl});
        REQUIRE(comes_true(servers[0], [&] { return !state_of(servers[2]).empty(); }));
    }
    const std::vector<redlock::master> all = addresses_of(servers);
    provision_options wanted{.max_ttl = changed_ttl};
    event_loop loop;
    const redlock::config options = unhurried({all[1], all[2], all[3], all[0]});
    wanted.takeover = true;
    wanted.leaving = 1;
    const changed got = take(start_change(loop, options, wanted)->promise.get_future(), "a takeover");
    INFO(got.report);
    REQUIRE_FALSE(got.error);
    CHECK(state_of(servers[0]).find(" retired ") != std::string::npos);
    CHECK(state_of(servers[3]).find(" armed ") != std::string::npos);
}

TEST_CASE(
    "change: an old master that comes back lets no client of the old list win, and is armed by none",
    "[guarded][scenario-73]")
{
    changing_masters masters{4, 3, short_lived};
    client old_client{masters.of_client({0, 1, 2})};
    CHECK(token_of(old_client) > 0);
    // It keeps its memory, its marker and its replication id.
    masters.at(0).stop();
    const changed got = masters.run({1, 2, 3}, {0});
    INFO(got.report);
    CHECK(got.report.outcome == provision_outcome::incomplete);
    masters.at(0).resume();
    client new_client{masters.of_client({1, 2, 3})};
    for (int times = 0; times < 3; ++times)
    {
        CHECK(token_of(new_client) > 0);
        CHECK_FALSE(wins_at_once(old_client));
    }
    const changed last = masters.run({1, 2, 3}, {0});
    INFO(last.report);
    CHECK_FALSE(last.error);
    masters.check(got.report, {1, 2, 3}, {0});
}

TEST_CASE("change: run again on servers of a group that grants, it arms nobody", "[guarded][scenario-85]")
{
    changing_masters masters{4, 3, short_lived};
    const changed first = masters.run({1, 2, 3}, {0});
    REQUIRE_FALSE(first.error);
    // As it was before it was armed.
    std::string text = masters.marker(2);
    text.replace(text.find("armed"), 5, "quarantine");
    masters.at(2).command({"SET", guarded_masters::guard, text});
    const changed again = masters.run({1, 2, 3}, {0});
    INFO(again.report);
    CHECK(again.error == errc::provisioning_failed);
    CHECK(found_at(again, 1) == provision_finding::in_service);
    CHECK(masters.marker(2) == text);
    client one{masters.of_client({1, 2, 3})};
    CHECK(token_of(one) > 0);
    CHECK(comes_true(masters.at(2), [&] { return masters.are({2}, "armed"); }));
    CHECK(masters.run({1, 2, 3}, {0}).report.outcome == provision_outcome::complete);
}

TEST_CASE("change: two runs at once make one group", "[guarded][threads]")
{
    changing_masters masters{5, 3, short_lived};
    event_loop one;
    event_loop other;
    const auto first = masters.start(one, {1, 2, 3, 4, 0}, {});
    const auto second = masters.start(other, {0, 1, 2, 3, 4}, {});
    const changed of_first = take(first->promise.get_future(), "the first run");
    const changed of_second = take(second->promise.get_future(), "the second run");
    INFO(of_first.report);
    INFO(of_second.report);
    CHECK(of_first.report.group == of_second.report.group);
    CHECK((!of_first.error || !of_second.error));
    masters.check(of_first.report, {0, 1, 2, 3, 4}, {});
}

TEST_CASE("change: arguments that contradict each other are refused", "[guarded]")
{
    std::vector<server> servers = start_servers(2);
    const redlock::config options = unhurried(servers);
    provision_options wanted = to_another;
    std::string what;
    SECTION("none stays")
    {
        wanted.leaving = 2;
        what = "leaving is 2 of 2 masters: a group needs one master or more";
    }
    SECTION("more are stopped than leave")
    {
        wanted.leaving = 1;
        wanted.stopped = 2;
        what = "stopped is 2: it must be at most leaving, which is 1";
    }
    SECTION("masters leave without a change")
    {
        wanted.action = provision_action::make_group;
        wanted.leaving = 1;
        what = "leaving can't be used with this action: masters leave only in a change or a takeover";
    }
    SECTION("a takeover by hand")
    {
        wanted.action = provision_action::arm;
        wanted.takeover = true;
        what =
            "takeover can't be used with this action: only a run that makes or changes a group can take over "
            "another one";
    }
    SECTION("no wait")
    {
        wanted.fresh = true;
        what = "fresh can't be used with this action: only masters that are made a group can do without the "
               "wait";
    }
    SECTION("no max_ttl")
    {
        wanted.max_ttl = 0ms;
        what = "a max_ttl of 0 ms can't be used: it must be from 1 to 3153600000000 ms (100 years)";
    }
    event_loop loop;
    const changed got = take(start_change(loop, options, wanted)->promise.get_future(), "a refused change");
    CHECK(got.error);
    CHECK(got.report.argument_error == what);
}

} // namespace redlock::test
