// SPDX-License-Identifier: BSL-1.0
// What a server's error replies mean for a lock.
#include "core/server_error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using core::after_error;
using core::classify;
using core::release_after;
using core::server_error;

/// A reply as servers write it, and its meaning.
struct meaning
{
    std::string_view reply;
    server_error error;
    release_after release;
    bool rules_out_a_key = true; // If it is the reply to a SET.
};

const std::array meanings{
    meaning{
        "NOSCRIPT No matching script. Please use EVAL.", server_error::no_script,
        release_after::again_at_first},
    meaning{"LOADING Redis is loading the dataset in memory", server_error::loading, release_after::again},
    meaning{
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        server_error::busy, release_after::again},
    meaning{
        "READONLY You can't write against a read only replica.", server_error::read_only,
        release_after::reconnect},
    meaning{
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        server_error::read_only, release_after::reconnect},
    meaning{
        "NOREPLICAS Not enough good replicas to write.", server_error::no_replicas, release_after::given_up},
    meaning{
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk.",
        server_error::misconfigured, release_after::given_up},
    meaning{
        "OOM command not allowed when used memory > 'maxmemory'.", server_error::out_of_memory,
        release_after::again},
    meaning{"NOAUTH Authentication required.", server_error::authentication, release_after::given_up},
    meaning{
        "WRONGPASS invalid username-password pair or user is disabled.", server_error::authentication,
        release_after::given_up},
    meaning{
        "NOPERM this user has no permissions to run the 'set' command", server_error::no_permission,
        release_after::given_up},
    meaning{"ERR max number of clients reached", server_error::too_many_clients, release_after::again},
    meaning{"MOVED 3999 127.0.0.1:6381", server_error::cluster, release_after::reconnect},
    meaning{"ASK 3999 127.0.0.1:6381", server_error::cluster, release_after::reconnect},
    meaning{"CLUSTERDOWN Hash slot not served", server_error::cluster, release_after::reconnect},
    meaning{
        "CROSSSLOT Keys in request don't hash to the same slot", server_error::cluster,
        release_after::reconnect},
    meaning{
        "TRYAGAIN Multiple keys request during rehashing of slot", server_error::cluster,
        release_after::reconnect},
    meaning{
        "WRONGTYPE Operation against a key holding the wrong kind of value", server_error::wrong_type,
        release_after::given_up},
    meaning{
        "WRONGTYPE Operation against a key holding the wrong kind of value script: ca1baee2, on "
        "@user_script:1.",
        server_error::wrong_type, release_after::given_up},
    meaning{"ERR unknown command 'SET'", server_error::unknown_command, release_after::given_up},
    meaning{
        "ERR unknown command 'EVALSHA', with args beginning with: 'ca1baee2' '1' ",
        server_error::unknown_command, release_after::given_up},
    meaning{
        "ERR unknown command `EVAL`, with args beginning with: `return 1`, ", server_error::unknown_command,
        release_after::given_up},
    // Raised inside a script, which may have written before.
    meaning{
        "ERR Unknown Redis command called from script script: ca1baee2, on @user_script:2.",
        server_error::other, release_after::again_at_first, false},
    meaning{"ERR upstream is gone", server_error::other, release_after::again_at_first, false},
    meaning{"", server_error::other, release_after::again_at_first, false},
};

} // namespace

TEST_CASE("error replies are classified as in the table")
{
    for (const meaning& row : meanings)
    {
        CAPTURE(row.reply);
        CHECK(classify(row.reply) == row.error);
        CHECK(after_error(classify(row.reply)) == row.release);
        CHECK(core::rules_out_a_key(classify(row.reply)) == row.rules_out_a_key);
    }
    CHECK_FALSE(core::rules_out_a_key(server_error::none));
}

TEST_CASE("the first word is enough to classify a reply")
{
    CHECK(classify("LOADING") == server_error::loading);
    CHECK(classify("NOPERM") == server_error::no_permission);
}

TEST_CASE("a word that only starts like a known one is an unknown error")
{
    const std::string_view reply = GENERATE(
        std::string_view{}, " ", "BUSYGROUP Consumer Group name already exists",
        "BUSYKEY Target key name exists", "busy", "LOADINGX", "ASKING", "ERR", "ERR max number", " OOM",
        "ERR OOM", std::string_view{"OOM\0", 4}, "LOADING\r\nOK",
        "UNKILLABLE Sorry the script already executed write commands");
    CAPTURE(reply);
    CHECK(classify(reply) == server_error::other);
    CHECK(after_error(server_error::other) == release_after::again_at_first);
}

TEST_CASE("a refusal for a key is told from that of a command, a channel or a script")
{
    const std::string_view about_key = GENERATE(
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "NOPERM No permissions to access a key");
    CHECK(core::is_about_key(about_key));
    const std::string_view about_another = GENERATE(
        "NOPERM this user has no permissions to run the 'eval' command",
        "NOPERM User key has no permissions to run the 'eval' command",
        "NOPERM this user has no permissions to access one of the channels used as arguments",
        "NOPERM No permissions to access a channel",
        "ERR The user executing the script can't access at least one of the keys mentioned in the command "
        "arguments",
        "ERR ACL failure in script: No permissions to access a key", "WRONGTYPE a key");
    CHECK_FALSE(core::is_about_key(about_another));
}

TEST_CASE("a command that a script may not call is told from a key, and from an error that passes")
{
    const std::string_view forbidden = GENERATE(
        "ERR The user executing the script can't run this command or subcommand",
        "ERR ACL failure in script: User key has no permissions to run the 'zrem' command",
        "NOPERM this user has no permissions to run the 'zrem' command",
        "@user_script: 12: The user executing the script can't run this command or subcommand",
        "ERR Unknown Redis command called from script", "ERR Unknown command called from script",
        "@user_script: 12: Unknown Redis command called from Lua script");
    CHECK(core::forbids_command(forbidden));
    const std::string_view allowed = GENERATE(
        "", "ERR syntax error", "ERR wrong number of arguments for 'hset' command",
        "ERR The user executing the script can't access at least one of the keys mentioned in the command "
        "arguments",
        "ERR ACL failure in script: No permissions to access a key",
        "OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Errors writing to the AOF file",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "READONLY You can't write against a read only replica.");
    CHECK_FALSE(core::forbids_command(allowed));
}

TEST_CASE("an error without a code is about the log-in if it mentions it")
{
    CHECK(core::is_about_log_in("ERR invalid password"));
    CHECK(core::is_about_log_in("ERR Client sent AUTH, but no password is set"));
    CHECK(core::is_about_log_in("ERR wrong number of arguments for 'auth' command"));
    CHECK(core::is_about_log_in("ERR Authentication required"));
    CHECK_FALSE(core::is_about_log_in("ERR upstream not available, try later"));
    CHECK_FALSE(core::is_about_log_in("DENIED Redis is running in protected mode, and no password is set"));
    CHECK_FALSE(core::is_about_log_in(""));
}

} // namespace redlock::test
