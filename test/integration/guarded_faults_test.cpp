// SPDX-License-Identifier: BSL-1.0
// Guarded mode on real masters that lose data, change their role or hang: there are never two holders, tokens rise, and the
// masters are armed again. Each test waits for events, and none depends on how long something takes.
#include "integration/guarded_masters.hpp"
#include "support/proxy.hpp"
#include "support/settable_clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// What happens to a master.
struct fault
{
    std::string name;
    std::function<void(guarded_masters&, std::size_t)> inject;
    incarnation_end why; // As the quarantine names it.
};

const std::vector<fault>& faults()
{
    static const std::vector<fault> all{
        {"killed, and restarted with its data",
         [](guarded_masters& of, std::size_t master) { of.restart_with_data(master); },
         incarnation_end::stale},
        {"killed, and restarted without its data",
         [](guarded_masters& of, std::size_t master) { of.restart_without_data(master); },
         incarnation_end::emptied},
        {"FLUSHALL",
         [](guarded_masters& of, std::size_t master) { expect_ok(of.at(master).command({"FLUSHALL"})); },
         incarnation_end::emptied},
        {"SWAPDB",
         [](guarded_masters& of, std::size_t master) {
             expect_ok(of.at(master).command({"SWAPDB", "0", "1"}));
         },
         incarnation_end::emptied},
        {"REPLICAOF and REPLICAOF NO ONE",
         [](guarded_masters& of, std::size_t master) { of.demote_and_promote(master); },
         incarnation_end::stale}};
    return all;
}

/// The servers of the tests: every program, however it keeps its data.
struct environment
{
    std::string program;
    persistence how;
};

environment any_environment()
{
    return {
        GENERATE(from_range(server_programs())),
        GENERATE(persistence::none, persistence::snapshot, persistence::append_only, persistence::both)};
}

/// Lets a client acquire the resource at masters 0 and 1 only, so that one more vote makes a second holder.
redlock::lease win_without_last(guarded_masters& masters, guarded_clients& clients)
{
    for (;;)
    {
        expect_ok(masters.at(2).command({"SET", "lock:stock", "foreign"}));
        redlock::lease held = clients.win(0, "stock", masters.max_ttl());
        masters.at(2).command({"DEL", "lock:stock"});
        if (held.valid())
        {
            return held;
        }
    }
}

/// Checks that a try of another client has not succeeded as long as the lease is held. Returns its token, if it has.
std::optional<std::uint64_t>
check_rival(redlock::lock_manager& rival, const redlock::lease& held, std::chrono::milliseconds ttl)
{
    acquired got = try_acquire(rival, "stock", {.ttl = ttl});
    if (got.error)
    {
        return std::nullopt;
    }
    const clock::time_point by = clock::now();
    CHECK(held.valid_until() <= by);
    CHECK(got.lease.fencing_token().value() > held.fencing_token().value());
    const std::uint64_t token = *got.lease.fencing_token();
    release(got.lease);
    return token;
}

/// Lets one client extend its lease, and another one try to get it, until master 1 is armed. Returns the largest token.
std::uint64_t contend_until_armed(
    guarded_masters& masters, guarded_clients& clients, redlock::lease& held, std::size_t since)
{
    std::uint64_t largest = held.fencing_token().value();
    const auto contend = [&]
    {
        largest = std::max(largest, check_rival(clients[1], held, masters.max_ttl()).value_or(0));
        if (held.valid())
        {
            extend(held, masters.max_ttl());
        }
        return clients.is_armed(1, since);
    };
    REQUIRE(comes_true(masters.at(2), contend));
    contend(); // With its vote.
    return largest;
}

/// A master with a replica that has its marker, but not the lock that a client has on it and on master 0.
struct lagging_replica
{
    explicit lagging_replica(const server_options& how)
        : masters{3, 2s, how}, replication{masters.at(1).port()}, replica{how}
    {
        const std::string port = std::to_string(replication.port());
        expect_ok(replica.command({"REPLICAOF", "127.0.0.1", port}));
        REQUIRE(becomes(replica, guarded_masters::guard, masters.marker(1)));
        clients.emplace(masters.options(), 2);
        clients->wait_for_armed(1, 0); // The first replica has cost a quarantine.
        const std::string marker = masters.marker(1);
        REQUIRE(becomes(replica, guarded_masters::guard, marker));
        replication.hold_to_client(); // From now on it lags.
        held = win_without_last(masters, *clients);
        CHECK(masters.at(1).command({"GET", "lock:stock"}) == held.owner_id());
        REQUIRE(replica.command({"GET", "lock:stock"}).is_null());
        // Without the replication id, its marker would entitle to vote.
        REQUIRE(replica.command({"GET", guarded_masters::guard}) == marker);
    }

    /// Checks that no other client gets the lock that master 1 has lost.
    void check_prevented(std::size_t since)
    {
        const std::uint64_t largest = contend_until_armed(masters, *clients, held, since);
        CHECK(clients->wait_for_quarantine(1, since).why == incarnation_end::stale);
        release(held);
        redlock::lease next = clients->win(1, "stock", masters.max_ttl());
        CHECK(next.fencing_token().value() > largest);
    }

    guarded_masters masters;
    proxy replication;
    server replica;
    std::optional<guarded_clients> clients{};
    redlock::lease held{};
};

/// Returns the program that makes backups; empty if there is none.
std::string backup_program()
{
    const std::string usual = find_program("redis-cli");
    const std::string found = usual.empty() ? find_program("valkey-cli") : usual;
    REQUIRE(!found.empty());
    return found;
}

/// Copies the data of a server to a file, as operators do.
void back_up(server& of)
{
    const temporary_directory directory;
    const std::string file = directory.path() + "/dump.rdb";
    const child_process copies{
        {backup_program(), "-p", std::to_string(of.port()), "--rdb", file}, directory.path() + "/output"};
    REQUIRE(copies.wait_for_end(patience));
    REQUIRE(std::filesystem::file_size(file) > 0);
}

} // namespace

TEST_CASE(
    "guarded: a master that has lost a key gives nobody a second lease, and votes again after its quarantine",
    "[guarded][own-servers][threads][scenario-6][scenario-7][scenario-8][scenario-9][scenario-10]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::append_only)};
    guarded_clients clients{masters.options(), 2};
    std::uint64_t last = 0;
    for (const fault& each : faults())
    {
        INFO(each.name);
        redlock::lease held = win_without_last(masters, clients);
        CHECK(held.fencing_token().value() > last);
        last = held.fencing_token().value();
        const std::size_t before = clients.mark();
        each.inject(masters, 1);
        last = std::max(last, contend_until_armed(masters, clients, held, before));
        CHECK(clients.wait_for_quarantine(1, before).why == each.why);
        release(held);
        redlock::lease next = clients.win(1, "stock", masters.max_ttl());
        CHECK(next.fencing_token().value() > last);
        last = next.fencing_token().value();
        release(next);
    }
}

TEST_CASE(
    "guarded: a replica that lags, and is promoted under the address of its master, gives nobody a second "
    "lease",
    "[guarded][own-servers][threads][scenario-12]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    const persistence how = GENERATE(persistence::none, persistence::both);
    CAPTURE(program, static_cast<int>(how));
    lagging_replica of{keeping_data(program, how)};
    const std::size_t before = of.clients->mark();
    of.masters.fail_over(1, std::move(of.replica));
    of.check_prevented(before);
}

TEST_CASE(
    "guarded: a master that falls back to older data without a restart gives nobody a second lease",
    "[guarded][own-servers][threads][scenario-9][scenario-70]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    lagging_replica of{keeping_data(program, persistence::none)};
    const std::size_t before = of.clients->mark();
    of.masters.fall_back_to(1, of.replica);
    CHECK_FALSE(of.masters.at(1).command({"GET", "lock:stock"}) == of.held.owner_id());
    of.check_prevented(before);
}

TEST_CASE(
    "guarded: a master that may evict keys isn't armed, so that no lock on it can be evicted",
    "[guarded][own-servers][threads][scenario-11]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::none)};
    guarded_clients clients{masters.options(), 1};
    redlock::lease first = clients.win(0, "stock", masters.max_ttl());
    release(first);
    const std::size_t before = clients.mark();
    expect_ok(masters.at(1).command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}));
    expect_ok(masters.at(1).command({"FLUSHALL"}));
    CHECK(comes_true(masters.at(2), [&] { return clients.is_arming_refused(1); }));
    CHECK(masters.marker(1).find(" quarantine emptied ") != std::string::npos);
    redlock::lease held = clients.win(0, "stock", masters.max_ttl());
    CHECK(masters.at(1).command({"EXISTS", "lock:stock"}) == 0);
    release(held);
    CHECK(!clients.is_armed(1, before));
    expect_ok(masters.at(1).command({"CONFIG", "SET", "maxmemory-policy", "noeviction"}));
    clients.wait_for_armed(1, before);
}

TEST_CASE(
    "guarded: a master whose clock is set ahead gives nobody a second lease, and votes again after its "
    "quarantine",
    "[guarded][own-servers][threads][scenario-4]")
{
    settable_clock clock_of_second{SETTABLE_CLOCK_PRELOAD};
    std::vector<server> servers;
    for (const std::string& program :
         {std::string{"redis-server"}, clock_of_second.program(), std::string{"redis-server"}})
    {
        servers.emplace_back(keeping_data(program, persistence::none));
    }
    guarded_masters masters{std::move(servers), 4s}; // Several looks.
    guarded_clients clients{masters.options(), 2};
    // Only a client that has looked at the master before can see that its clock was set.
    const auto knows_clock = [&]
    {
        acquired got = try_acquire(clients[1], "other", {.ttl = masters.max_ttl()});
        if (!got.error)
        {
            release(got.lease);
        }
        return got.report.masters()[1].vote == vote::granted;
    };
    REQUIRE(comes_true(masters.at(0), knows_clock));
    redlock::lease held = win_without_last(masters, clients);
    std::uint64_t last = held.fencing_token().value();
    const std::size_t before = clients.mark();
    // The key of master 1 is gone then, and this master and master 2 would be a quorum. On a machine that is too slow to judge
    // the clock in time, the master votes again without a quarantine, and the clock is set once more.
    std::chrono::seconds ahead{0};
    for (bool votes = true; !clients.is_armed(1, before);)
    {
        if (votes)
        {
            clock_of_second.set(ahead += 30s);
        }
        acquired got = try_acquire(clients[1], "stock", {.ttl = masters.max_ttl()});
        votes = got.report.masters()[1].vote == vote::granted;
        if (!got.error)
        {
            CHECK(held.valid_until() <= clock::now());
            CHECK(got.lease.fencing_token().value() > last);
            last = got.lease.fencing_token().value();
            release(got.lease);
        }
        masters.at(2).command({"BLPOP", "no list of anybody", "0.01"}); // Answered at the timeout.
    }
    CHECK(clients.wait_for_quarantine(1, before).why == incarnation_end::clock);
    release(held);
    const bool votes = comes_true(
        masters.at(1),
        [&]
        {
            acquired got = try_acquire(clients[0], "stock", {.ttl = masters.max_ttl()});
            if (got.error)
            {
                return false;
            }
            CHECK(got.lease.fencing_token().value() > last);
            last = got.lease.fencing_token().value();
            const auto said = got.report.masters();
            release(got.lease);
            return said[1].vote == vote::granted;
        });
    CHECK(votes);
}

TEST_CASE(
    "guarded: clients that compete while each master loses its data in turn never hold a lock together",
    "[guarded][own-servers][threads][scenario-6][scenario-7]")
{
    const environment where = any_environment();
    CAPTURE(where.program, static_cast<int>(where.how));
    guarded_masters masters{3, 800ms, keeping_data(where.program, where.how)};
    guarded_clients clients{masters.options(), 3};
    contest fight{clients, masters.max_ttl()};
    fight.wait_for_holdings(3);
    std::size_t master = 0;
    for (const fault& each : faults())
    {
        if (where.how == persistence::none && each.name == faults().front().name)
        {
            continue;
        }
        INFO(each.name);
        const std::size_t before = clients.mark();
        each.inject(masters, master);
        CHECK(clients.wait_for_quarantine(master, before).why == each.why);
        fight.wait_for_holdings(1); // Two masters are enough.
        clients.wait_for_armed(master, before);
        fight.wait_for_holdings(1);
        master = (master + 1) % masters.size();
    }
    CHECK(contradictions(fight.finish()) == std::vector<std::string>{});
}

TEST_CASE(
    "guarded: a marker doesn't come back by SWAPDB after a quarantine", "[guarded][own-servers][scenario-69]")
{
    guarded_masters masters{3, 800ms, keeping_data("redis-server", persistence::none)};
    guarded_clients clients{masters.options(), 1};
    redlock::lease held = clients.win(0, "stock", masters.max_ttl());
    release(held);
    for (int time = 0; time < 2; ++time)
    {
        const std::size_t before = clients.mark();
        expect_ok(masters.at(1).command({"SWAPDB", "0", "1"}));
        CHECK(masters.marker(1).find(" armed ") == std::string::npos);
        clients.wait_for_armed(1, before);
    }
}

TEST_CASE(
    "guarded: the first replica of a master puts it into quarantine, and takes no vote away for longer",
    "[guarded][own-servers][threads][scenario-80]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::none)};
    guarded_clients clients{masters.options(), 2};
    contest fight{clients, masters.max_ttl()};
    fight.wait_for_holdings(3);
    server replica{keeping_data(program, persistence::none)};
    std::size_t before = clients.mark();
    expect_ok(replica.command({"REPLICAOF", "127.0.0.1", std::to_string(masters.at(1).port())}));
    CHECK(clients.wait_for_quarantine(1, before).why == incarnation_end::stale);
    clients.wait_for_armed(1, before);
    REQUIRE(becomes(replica, guarded_masters::guard, masters.marker(1)));
    // A second one changes nothing.
    server other{keeping_data(program, persistence::none)};
    const std::string marker = masters.marker(1);
    before = clients.mark();
    expect_ok(other.command({"REPLICAOF", "127.0.0.1", std::to_string(masters.at(1).port())}));
    REQUIRE(becomes(other, guarded_masters::guard, marker));
    fight.wait_for_holdings(5);
    CHECK(clients.quarantines(before) == 0);
    CHECK(masters.marker(1) == marker);
    CHECK(contradictions(fight.finish()) == std::vector<std::string>{});
}

TEST_CASE(
    "guarded: a backup of each master in turn costs a quarantine each, with repl-backlog-ttl 0 once for each "
    "process",
    "[guarded][own-servers][threads][scenario-80]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::none)};
    guarded_clients clients{masters.options(), 2};
    contest fight{clients, masters.max_ttl()};
    fight.wait_for_holdings(3);
    const auto back_up_in_vain = [&](std::size_t master)
    {
        const std::size_t before = clients.mark();
        back_up(masters.at(master));
        CHECK(clients.wait_for_quarantine(master, before).why == incarnation_end::stale);
        clients.wait_for_armed(master, before);
        fight.wait_for_holdings(1);
    };
    const auto set_backlog_ttl = [&](std::size_t master, const std::string& seconds) {
        expect_ok(masters.at(master).command({"CONFIG", "SET", "repl-backlog-ttl", seconds}));
    };
    for (const std::size_t master : {0U, 1U, 2U})
    {
        set_backlog_ttl(master, master == 2 ? "3600" : "0");
        back_up_in_vain(master);
    }
    const std::string marker_of_0 = masters.marker(0);
    const std::string marker_of_1 = masters.marker(1);
    // Without this setting, a master forgets after a while that it had a replica: it changes its id once more.
    const std::string id_of_2 = masters.replication_id(2);
    std::size_t before = clients.mark();
    set_backlog_ttl(2, "1");
    REQUIRE(comes_true(masters.at(2), [&] { return masters.replication_id(2) != id_of_2; }));
    CHECK(clients.wait_for_quarantine(2, before).why == incarnation_end::stale);
    REQUIRE(comes_true(masters.at(2), [&] { return masters.is_armed(2); }));
    // As much time has passed for the others. A second backup changes nothing there.
    for (const std::size_t master : {0U, 1U})
    {
        back_up(masters.at(master));
        const auto looks = [&] { return info_number(masters.at(master), "commandstats", "cmdstat_hget"); };
        const long long so_far = looks();
        REQUIRE(comes_true(masters.at(master), [&] { return looks() > so_far + 4; }));
    }
    CHECK(masters.marker(0) == marker_of_0);
    CHECK(masters.marker(1) == marker_of_1);
    // Another process.
    before = clients.mark();
    masters.restart_without_data(0);
    CHECK(clients.wait_for_quarantine(0, before).why == incarnation_end::emptied);
    clients.wait_for_armed(0, before);
    set_backlog_ttl(0, "0");
    back_up_in_vain(0);
    CHECK(contradictions(fight.finish()) == std::vector<std::string>{});
}

TEST_CASE("guarded: a master that hangs isn't put into quarantine, and votes again", "[own-servers][threads]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::append_only)};
    guarded_clients clients{masters.options(), 3};
    contest fight{clients, masters.max_ttl()};
    fight.wait_for_holdings(3);
    const std::size_t before = clients.mark();
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        // Longer than a lock lasts.
        expect_ok(masters.at(master).command({"DEBUG", "SLEEP", "1"}));
        fight.wait_for_holdings(2);
    }
    CHECK(contradictions(fight.finish()) == std::vector<std::string>{});
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        const bool votes = comes_true(
            masters.at(master),
            [&]
            {
                acquired got = try_acquire(clients[0], "other", {.ttl = masters.max_ttl()});
                const auto said = got.report.masters();
                release(got.lease);
                return !got.error && said[master].vote == vote::granted;
            });
        CHECK(votes);
    }
    CHECK(clients.quarantines(before) == 0);
}

TEST_CASE(
    "guarded: after a restart of all masters with their data, locks can be acquired again, with larger "
    "tokens",
    "[guarded][own-servers][scenario-65]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    const persistence how = GENERATE(persistence::snapshot, persistence::append_only, persistence::both);
    CAPTURE(program, static_cast<int>(how));
    guarded_masters masters{3, 800ms, keeping_data(program, how)};
    guarded_clients clients{masters.options(), 2};
    redlock::lease held = clients.win(0, "stock", masters.max_ttl());
    const std::size_t before = clients.mark();
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        masters.restart_with_data(master);
    }
    redlock::lease next = clients.win(1, "stock", masters.max_ttl());
    CHECK(held.valid_until() <= clock::now());
    CHECK(next.fencing_token().value() > held.fencing_token().value());
    for (std::size_t master = 0; master < masters.size(); ++master)
    {
        CHECK(clients.wait_for_quarantine(master, before).why == incarnation_end::stale);
        clients.wait_for_armed(master, before);
    }
    const std::uint64_t token = next.fencing_token().value();
    release(next);
    CHECK(clients.win(0, "stock", masters.max_ttl()).fencing_token().value() > token);
}

TEST_CASE(
    "guarded: masters of which a majority came back empty are armed by nobody",
    "[guarded][own-servers][scenario-66]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    CAPTURE(program);
    guarded_masters masters{3, 800ms, keeping_data(program, persistence::none)};
    guarded_clients before{masters.options(), 1};
    static_cast<void>(before.win(0, "stock", masters.max_ttl())); // Released at once.
    const std::string last = masters.marker(2);
    masters.at(0).kill();
    masters.at(1).kill();
    masters.restart_without_data(0);
    masters.restart_without_data(1);
    guarded_clients after{masters.options(), 1};
    // Time for looks after max_ttl and the longest delay of arming.
    const auto looks = [&] { return info_number(masters.at(2), "commandstats", "cmdstat_hget"); };
    const long long so_far = looks();
    REQUIRE(comes_true(masters.at(2), [&] { return looks() > so_far + 40; }));
    for (guarded_clients* const each : {&before, &after})
    {
        const acquired got = try_acquire((*each)[0], "stock", {.ttl = masters.max_ttl()});
        INFO(got.report);
        CHECK(got.error == errc::no_quorum);
        CHECK(got.report.masters()[0].reason == master_errc::not_provisioned);
        CHECK(got.report.masters()[1].reason == master_errc::not_provisioned);
        CHECK(each->quarantines(0) == 0);
    }
    CHECK(masters.marker(0).empty());
    CHECK(masters.marker(1).empty());
    CHECK(masters.marker(2) == last);
}

TEST_CASE(
    "guarded: a value of megabytes at a key of the group costs its master the vote until it is deleted",
    "[guarded][own-servers]")
{
    const std::string key =
        GENERATE(as<std::string>{}, guarded_masters::guard, guarded_masters::fence, guarded_masters::members);
    CAPTURE(key);
    guarded_masters masters{3, 800ms, keeping_data("redis-server", persistence::none)};
    guarded_clients clients{masters.options(), 1};
    const auto answer_of_second = [&]
    {
        acquired got = try_acquire(clients[0], "stock", {.ttl = masters.max_ttl()});
        if (!got.error)
        {
            release(got.lease);
        }
        return got.report.masters()[1];
    };
    const auto votes = [&] { return answer_of_second().vote == vote::granted; };
    REQUIRE(comes_true(masters.at(1), votes));
    const std::string huge(2'000'000, 'x');
    if (key == guarded_masters::fence)
    {
        masters.at(1).command({"HSET", key, "floor", huge});
    }
    else
    {
        expect_ok(masters.at(1).command({"SET", key, huge}));
    }
    const auto is_refused = [&] { return answer_of_second().reason == master_errc::protocol_error; };
    CHECK(comes_true(masters.at(2), is_refused));
    redlock::lease held = clients.win(0, "stock", masters.max_ttl());
    release(held);
    masters.at(1).command({"DEL", key});
    CHECK(comes_true(masters.at(1), votes));
}

} // namespace redlock::test
