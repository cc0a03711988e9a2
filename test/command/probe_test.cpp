// SPDX-License-Identifier: BSL-1.0
// redlock doctor on masters that look good but refuse locks. Uses real servers of both kinds.
#include "command/diagnosed.hpp"

#include "support/foreign_address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace
{

/// A good master with the user of the documentation, who may also read settings.
class guarded_master
{
  public:
    explicit guarded_master(const std::string& kind, strings settings = {})
        : server_{durable(std::move(settings), kind)}
    {
        strings words = documented_user("open-sesame");
        words.emplace_back("+config|get");
        for (const std::string& word : words)
        {
            allow(word);
        }
    }

    /// Adds a rule to the user's ACL.
    void allow(const std::string& rule)
    {
        if (rule != documented_user_name)
        {
            expect_ok(server_.command({"ACL", "SETUSER", documented_user_name, rule}));
        }
    }
    std::string url() const { return fmt::format("redis://locker:open-sesame@127.0.0.1:{}", server_.port()); }
    server& at() { return server_; }
    /// Returns the longest remaining ttl of any key; -1 for a key without expiry, 0 without a key.
    long long max_lifetime()
    {
        long long most = 0;
        for (const reply& key : server_.command({"KEYS", "*"}).elements)
        {
            const long long left = server_.command({"PTTL", key.text}).integer;
            most = left == -1 || most == -1 ? -1 : std::max(most, left);
        }
        return most;
    }

  private:
    server server_;
};

/// Returns the `what` of the first finding of a kind on one master.
std::string what_is_said(const std::string& url, const std::string& kind, const strings& options = {})
{
    const tree all = json_of({url}, options);
    return what_of(master_at(all, 0), kind);
}

} // namespace

TEST_CASE("probe: names the command that an ACL forbids", "[scenario-102]")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    guarded_master master{kind};
    CHECK(alone(master.url()) == "good: ");
    for (const char* command : {"set", "get", "del", "pttl", "pexpire", "eval", "evalsha"})
    {
        CAPTURE(command);
        master.allow(fmt::format("-{}", command));
        const diagnosed found = diagnose({master.url()});
        // Locks work without EVAL, as long as the server keeps their scripts.
        const bool works = command == std::string{"eval"};
        CHECK(found.end == process_end{.exit_code = works ? 1 : 69});
        CHECK_THAT(
            found.text,
            ContainsSubstring(fmt::format(
                ": {}: its ACL forbids the user locker: {}. ", works ? "warning" : "failure", command)));
        CHECK_THAT(found.text, ContainsSubstring(fmt::format("ACL SETUSER locker +{}.\n", command)));
        CHECK(found.text.find("sesame") == std::string::npos);
        // A key that it couldn't release expires soon.
        const long long life = master.max_lifetime();
        CHECK(life >= 0);
        CHECK(life <= 5000);
        master.allow(fmt::format("+{}", command));
    }
    master.allow("-set");
    master.allow("-eval");
    CHECK_THAT(what_is_said(master.url(), "permission"), EndsWith(": set, eval"));
    // Redis 7.0 doesn't name a command that a script calls: the finding has all that it may be.
    master.allow("+set");
    master.allow("-pexpire");
    CHECK_THAT(what_is_said(master.url(), "permission"), ContainsSubstring("pexpire"));
}

TEST_CASE("probe: finds a master that refuses a command of the wait queue")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    guarded_master master{kind};
    for (const char* command :
         {"exists", "zadd", "zrem", "zrange", "zrank", "zscore", "zcard", "hset", "hget", "hmget", "hdel",
          "publish", "subscribe"})
    {
        CAPTURE(command);
        master.allow(fmt::format("-{}", command));
        const diagnosed found = diagnose({master.url()});
        CHECK(found.end == process_end{.exit_code = 1});
        CHECK_THAT(found.text, ContainsSubstring(": warning: it refuses "));
        CHECK_THAT(found.text, ContainsSubstring("Clients that wait for a lock get it up to"));
        master.allow(fmt::format("+{}", command));
    }
    CHECK(alone(master.url()) == "good: ");
    // The keys of the queue.
    master.allow("resetkeys");
    master.allow("~lock:*");
    CHECK(alone(master.url()) == "usable: warning limited_queue");
    CHECK(alone(master.url(), {"--no-probe"}) == "good: ");
}

TEST_CASE("probe: uses keys with the prefix of the locks")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    guarded_master master{kind};
    master.allow("resetkeys");
    master.allow("~team:*");
    master.allow("~redlock-queue:order:team:*");
    master.allow("~redlock-queue:alive:team:*");
    CHECK(
        what_is_said(master.url(), "permission") ==
        "its ACL forbids the user locker keys that begin with 'lock:'");
    CHECK(alone(master.url(), {"--prefix", "team:"}) == "good: ");
    CHECK(alone(master.url(), {"--no-probe"}) == "good: ");
}

TEST_CASE("probe: names the setting or the state that makes a master refuse locks", "[scenario-50]")
{
    struct state
    {
        strings settings;
        const char* verdict;
        const char* advice;
        const char* without_probe = "good: ";
    };
    constexpr const char* limited = "usable: warning limited_queue";
    const std::string kind = GENERATE(from_range(server_programs()));
    const state given = GENERATE(
        state{{"--maxmemory", "1"}, "unusable: failure memory", "Raise maxmemory"},
        state{{"--min-replicas-to-write", "1"}, "unusable: failure replicas", "Set min-replicas-to-write 0"},
        state{{"--rename-command", "EVAL", ""}, "usable: warning no_command", "Remove rename-command"},
        state{{"--rename-command", "EVALSHA", ""}, "unusable: failure no_command", "Remove rename-command"},
        state{{"--rename-command", "SET", ""}, "unusable: failure no_command", "Remove rename-command"},
        state{{"--rename-command", "PEXPIRE", ""}, "unusable: failure no_command", "Remove rename", limited},
        state{{"--rename-command", "ZADD", ""}, limited, "it refuses ZADD", limited},
        state{{"--rename-command", "HGET", ""}, limited, "Allow the queue", limited});
    CAPTURE(kind, given.settings);
    const server master{durable(given.settings, kind)};
    const diagnosed found = diagnose({master.url()}, {"--json"});
    CHECK(verdict_in(found) == given.verdict);
    CHECK_THAT(found.text, ContainsSubstring(given.advice));
    CHECK(alone(master.url(), {"--no-probe"}) == given.without_probe);
}

TEST_CASE("probe: measures a lock's commands, which wait for the disk, unlike plain round trips")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    server_options slow = durable({}, kind);
    slow.program = program_with_disk(kind, 700ms);
    const server master{slow};
    const diagnosed found = diagnose({master.url()}, {"--json"}, slow_part::disk);
    CHECK(verdict_in(found) == "usable: warning slow");
    const tree all = read_json(found.text);
    const tree& one = master_at(all, 0);
    for (const char* step : {"acquire_us", "extend_us", "release_us"})
    {
        CHECK(one.get<double>(step) >= 700'000);
    }
    CHECK_THAT(
        found.text, ContainsSubstring("default node timeout of 50 ms all of its votes arrive too late"));
    CHECK_THAT(found.text, ContainsSubstring("redlock run (500 ms for its default --ttl) too"));
}

TEST_CASE("probe: leaves no key, and --no-probe writes none")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    server master{durable({}, kind)};
    const auto writes = [&master]
    {
        return master.command({"INFO", "commandstats"}).text.find("cmdstat_set:") != std::string::npos ||
               master.command({"INFO", "persistence"}).text.find("rdb_changes_since_last_save:0\r\n") ==
                   std::string::npos;
    };
    CHECK(alone(master.url(), {"--no-probe"}) == "good: ");
    CHECK_FALSE(writes());
    CHECK(alone(master.url()) == "good: ");
    CHECK(writes());
    CHECK(master.command({"DBSIZE"}) == 0);
}

TEST_CASE("doctor: reports a finding once if all masters have it")
{
    std::vector<server> masters;
    for (int count = 0; count < 5; ++count)
    {
        masters.emplace_back(durable({"--min-replicas-to-write", "1"}));
    }
    const diagnosed found = diagnose(urls_of(masters));
    CHECK(found.end == process_end{.exit_code = 69});
    CHECK_THAT(
        found.text,
        ContainsSubstring("\nall 5 masters: failure: it refuses writes because too few replicas"));
    CHECK_THAT(found.text, ContainsSubstring("\nall 5 masters: note: the default user needs no password. "));
    for (const server& each : masters)
    {
        CHECK_THAT(found.text, !ContainsSubstring(each.url() + ":"));
    }
    // A master that differs ends the common line; the others are named one by one.
    masters[3].command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    const diagnosed mixed = diagnose(urls_of(masters));
    CHECK_THAT(mixed.text, !ContainsSubstring("all 5 masters: failure"));
    CHECK_THAT(mixed.text, ContainsSubstring(masters[2].url() + ": failure: "));
    CHECK_THAT(mixed.text, !ContainsSubstring(masters[3].url() + ": failure: "));
}

TEST_CASE("doctor: reports the range of times measured on all masters")
{
    std::vector<server> masters;
    for (const std::chrono::milliseconds each_write : {200ms, 400ms})
    {
        server_options options = durable();
        options.program = program_with_disk("redis-server", each_write);
        masters.emplace_back(options);
    }
    const diagnosed found = diagnose(urls_of(masters), {}, slow_part::disk);
    CHECK_THAT(found.text, ContainsSubstring("\nall 2 masters: warning: its slowest answer"));
    CHECK_THAT(found.text, !ContainsSubstring(masters[0].url() + ":"));
}

TEST_CASE(
    "doctor: reports an open default user, and protected mode, which refuses all other machines",
    "[scenario-103]")
{
    const std::string kind = GENERATE(from_range(server_programs()));
    CAPTURE(kind);
    const foreign_address here;
    server_options options = durable({"--bind", "127.0.0.1", here.text()}, kind);
    options.over = transport::tcp;
    options.as = user::default_user;
    server master{options};
    const std::string local = fmt::format("redis://127.0.0.1:{}", master.port());
    const std::string remote = fmt::format("redis://{}:{}", here.text(), master.port());

    // A note on this machine, a warning on a network.
    CHECK(what_is_said(local, "no_password") == "the default user needs no password");
    CHECK(diagnose({local}).end == process_end{.exit_code = 0});
    CHECK(what_is_said(remote, "no_password") == "the default user needs no password");
    CHECK(diagnose({remote}).end == process_end{.exit_code = 1});

    const std::string with_user = fmt::format("redis://locker:open-sesame@{}:{}", here.text(), master.port());
    expect_ok(master.command(
        {"ACL", "SETUSER", "locker", "on", ">open-sesame", "allkeys", "allchannels", "+@all"}));
    CHECK(what_is_said(with_user, "no_password") == "the default user needs no password");

    expect_ok(master.command({"CONFIG", "SET", "protected-mode", "yes"}));
    CHECK(alone(remote) == "unusable: failure protected_mode");
    CHECK(alone(with_user) == "unusable: failure protected_mode");
    CHECK(alone(local) == "good: ");

    expect_ok(master.command({"ACL", "SETUSER", "default", "resetpass"}));
    CHECK(what_is_said(with_user, "no_password").empty());
    CHECK(alone(with_user) == "good: ");
}

} // namespace redlock::test
