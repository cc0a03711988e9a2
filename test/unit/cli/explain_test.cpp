// SPDX-License-Identifier: BSL-1.0
// How redlock run describes votes, owners and the loss of a lease.
#include "cli/run/explain.hpp"

#include "unit/cli/rounds.hpp"

#include <boost/asio/error.hpp>
#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

const std::vector<master_report> one_of_each{
    voted(vote::granted),
    voted(vote::denied),
    voted(vote::pending),
    voted(vote::timed_out, master_errc::timed_out, "not shown"),
    voted(vote::failed, master_errc::busy),
    voted(vote::failed, master_errc::command_failed, "ERR as it said"),
    voted(vote::unsent, master_errc::connect_timed_out),
    voted(vote::unsent)};

const std::string failures =
    "\n  d: no answer within 120 ms (--ttl / 20, at most 500 ms)"
    "\n  e: it is running a slow script"
    "\n  f: it replied with an error that this library doesn't know (\"ERR as it said\")"
    "\n  g: no connection to it in time"
    "\n  h: unsent";

} // namespace

TEST_CASE("explain: each vote has its words, which depend on the operation", "[run]")
{
    const auto votes = [](operation verb, const error_code& result)
    { return cli::votes_of(round_of(verb, result, one_of_each)); };
    CHECK(
        votes(operation::acquire, errc::no_quorum) ==
        "\n  a: granted\n  b: held by another client\n  c: not waited for: the others decided the round" +
            failures);
    CHECK(
        votes(operation::extend, errc::no_quorum) ==
        "\n  a: extended\n  b: the key is missing or has another owner"
        "\n  c: not waited for: the others decided the round" +
            failures);
    CHECK(
        votes(operation::acquire, boost::asio::error::operation_aborted) ==
        "\n  a: granted\n  b: held by another client\n  c: no answer before the attempt ended" + failures);
    CHECK(cli::votes_of(report{}).empty());
    // A quorum has granted, too late.
    CHECK(
        cli::votes_of(round_of(
            operation::acquire, errc::validity_exhausted,
            {voted(vote::granted), voted(vote::granted), voted(vote::pending)})) ==
        "\n  a: granted\n  b: granted\n  c: not waited for: the others decided the round");
    // The lease ended before the masters that had not answered could decide the round.
    CHECK(
        cli::votes_of(round_of(
            operation::extend, errc::no_quorum,
            {voted(vote::granted), voted(vote::pending), voted(vote::pending)})) ==
        "\n  a: extended\n  b: no answer before the round ended\n  c: no answer before the round ended");
}

TEST_CASE("explain: each master's answer about the resource has its words", "[run]")
{
    master_inspection foreign = has("", 2s);
    foreign.detail = short_text{"WRONGTYPE"};
    const inspection found = inspected(
        {has("me", 1250ms),
         has("you"),
         {},
         foreign,
         fails(master_errc::timed_out),
         fails(master_errc::busy, "BUSY as it said")});
    const std::string answers =
        "\n  d: has a key that is not a lock (\"WRONGTYPE\"), for another 2.0 s"
        "\n  e: no answer in time\n  f: it is running a slow script (\"BUSY as it said\")";
    CHECK(
        cli::holders_of(found) ==
        "\n  a: held by me, for another 1.2 s\n  b: held by you\n  c: free" + answers);
    CHECK(
        cli::holders_of(found, "me") == "\n  a: the key is ours, for another 1.2 s\n  b: held by you"
                                        "\n  c: the key is gone" +
                                            answers);
}

TEST_CASE("explain: a position in the queue is the number of clients ahead", "[run]")
{
    const auto words = [](std::size_t ahead)
    { return cli::position_in_words({.master = 3, .ahead = ahead, .waiting = 9, .key_expires_in = {}}); };
    CHECK(words(0) == "first in the queue");
    CHECK(words(1) == "1 client ahead in the queue");
    CHECK(words(2) == "2 clients ahead in the queue");
    CHECK(words(11) == "11 clients ahead in the queue");
}

TEST_CASE("explain: the owner on a quorum is named, with the longest time of its keys", "[run]")
{
    CHECK(
        cli::holder_of(inspected({has("me", 1s), has("you", 9s), has("me", 3s), has("me", 2s), {}})) ==
        "held by me on 3 of 5 masters, for another 3.0 s unless it is extended");
    CHECK(
        cli::holder_of(inspected({has("me", 1s), has("me"), has("me", 3s)})) ==
        "held by me on 3 of 3 masters, without expiry");
    CHECK(
        cli::holder_of(inspected({has("me", 1s), has("me", 2s), has("you")})) ==
        "held by me on 2 of 3 masters, for another 2.0 s unless it is extended");
    CHECK(
        cli::holder_of(inspected({has("me", 1s), has("you", 2s), {}})) ==
        "no owner has it on a quorum of the masters:\n  a: held by me, for another 1.0 s"
        "\n  b: held by you, for another 2.0 s\n  c: free");
    CHECK(cli::holder_of(inspected({{}, {}, {}})) == "no owner has it on a quorum of the masters");
    CHECK(
        cli::holder_of(
            inspected({has("me"), has("me"), fails(master_errc::busy), fails(master_errc::busy)})) ==
        "only 2 of 4 masters answered (quorum 3):\n  a: held by me\n  b: held by me"
        "\n  c: it is running a slow script\n  d: it is running a slow script");
}

TEST_CASE("explain: a loss is explained by the failed extension and by the masters' answers", "[run]")
{
    const auto why = [](const std::vector<master_inspection>& answers)
    {
        const std::string text = cli::why_lost({}, inspected(answers), "me");
        return text.substr(0, text.find('\n'));
    };
    const master_inspection silent = fails(master_errc::timed_out);
    // Enough masters without our key explain it, even if few answer.
    CHECK(
        why({has("you"), {}, has("us"), silent, silent}) ==
        "of 5 masters 2 have the key of another owner, and 1 have no key:");
    CHECK(
        why({{}, {}, {}, has("me"), has("you")}) ==
        "of 5 masters 1 have the key of another owner, and 3 have no key:");
    CHECK(why({has("you"), {}, silent, silent, silent}) == "only 2 of 5 masters answer now (quorum 3):");
    CHECK(why({has("me"), {}, has("you"), silent, silent}) == "a quorum of 3 masters answers now:");
    CHECK(why({has("you"), {}, has("me"), has("me"), has("me")}) == "a quorum of 3 masters answers now:");
    // Of an even number, half without our key are too many.
    CHECK(
        why({has("you"), {}, has("me"), has("me")}) ==
        "of 4 masters 1 have the key of another owner, and 1 have no key:");
    CHECK(why({}) == "the masters didn't answer an inspection of the key in time");

    const report failed =
        round_of(operation::extend, errc::no_quorum, {voted(vote::granted), voted(vote::denied)});
    const std::string extension = "the last extension failed:\n  a: extended\n  b: the key is missing or has "
                                  "another owner\n  ";
    CHECK(
        cli::why_lost(failed, inspected({has("me", 1s)}), "me") ==
        extension + "a quorum of 1 masters answers now:\n  a: the key is ours, for another 1.0 s");
    CHECK(
        cli::why_lost(failed, {}, "me") ==
        extension + "the masters didn't answer an inspection of the key in time");
}

} // namespace redlock::test
