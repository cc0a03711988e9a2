// SPDX-License-Identifier: BSL-1.0
// What redlock run keeps of the events of its manager, and the lines of -v.
#include "cli/run/journal.hpp"

#include "unit/cli/captured_errors.hpp"
#include "unit/cli/rounds.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <regex>
#include <string>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

error_code refused_by_system(int number)
{
    return {number, boost::system::system_category()};
}

/// A journal, and the messages on stderr without their times.
class observed_journal
{
  public:
    explicit observed_journal(bool verbose = true) : log_{verbose} {}

    /// Returns the lines that the event causes.
    std::string take(const redlock::event& what)
    {
        observer_.on_event(what);
        static const std::regex time{R"(\[ +[0-9]+\.[0-9]{3} s\])"};
        return std::regex_replace(errors_.take(), time, "[]");
    }
    /// The same for a round of three masters.
    std::string round(operation verb, error_code result, const std::vector<master_report>& votes)
    {
        return take(round_decided{"job", round_of(verb, result, votes), "me"});
    }
    /// Returns true if this event was pushed.
    bool pushed(cli::event_kind kind) const { return mailbox_.contains({.kind = kind}); }
    const cli::journal& at() const { return journal_; }

  private:
    captured_errors errors_;
    boost::asio::io_context io_;
    cli::mailbox mailbox_{io_};
    cli::verbose_log log_;
    cli::journal journal_{log_, mailbox_, 3};
    observer observer_ = journal_.observer();
};

lease_extended extension()
{
    return {"job", "me", clock::now() + 2h};
}

const std::vector<master_report> all_granted{
    voted(vote::granted), voted(vote::granted), voted(vote::granted)};

} // namespace

TEST_CASE("verbose: each event is one line that names what has changed", "[verbose]")
{
    observed_journal seen;
    CHECK(seen.take(master_up{1, "b", "run id"}) == "redlock: [] b is up\n");
    CHECK(
        seen.take(master_down{1, "b", master_errc::unresponsive, ""}) ==
        "redlock: [] b is down: it stopped answering and was disconnected\n");
    CHECK(
        seen.take(master_down{2, "c", master_errc::loading, "LOADING as it said"}) ==
        "redlock: [] c is down: it is loading its data (\"LOADING as it said\")\n");
    CHECK(
        seen.take(master_warning{2, "c", risk::outdated, "redis 5.0"}) ==
        "redlock: [] c: warning: outdated, redis 5.0\n");
    CHECK(
        seen.take(
            acquire_queued{"job", {.master = 1, .ahead = 2, .waiting = 5, .key_expires_in = {}}, "b"}) ==
        "redlock: [] waiting at b, 2 clients ahead in the queue\n");
    CHECK(
        seen.take(lease_lost{"job", "me", errc::hold_limit_reached}) ==
        "redlock: [] the lock is lost: --max-hold was reached\n");
    CHECK(seen.take(lease_released{"job", "me", {}}) == "redlock: [] released\n");
    CHECK(
        seen.take(lease_released{"job", "me", errc::unconfirmed}) ==
        "redlock: [] released: no quorum confirmed the release in time\n");
    CHECK(seen.take(events_dropped{7}) == "redlock: [] 7 events were dropped\n");
    const std::regex extended{R"(redlock: \[\] extended, valid for 7[12][0-9]{2}\.[0-9]{3} s\n)"};
    CHECK(std::regex_match(seen.take(extension()), extended));
}

TEST_CASE("verbose: without -v no event is reported", "[verbose]")
{
    observed_journal seen{false};
    CHECK(seen.take(master_up{1, "b", "run id"}).empty());
    CHECK(seen.take(extension()).empty());
    CHECK(seen.round(operation::acquire, errc::no_quorum, all_granted).empty());
}

TEST_CASE(
    "verbose: a round is reported if its outcome differs from the previous one of its kind", "[verbose]")
{
    observed_journal seen;
    const std::vector<master_report> two_down{
        voted(vote::granted), voted(vote::unsent, master_errc::not_connected),
        voted(vote::failed, master_errc::busy)};
    const std::vector<master_report> others_down{
        voted(vote::failed, master_errc::busy), voted(vote::unsent, master_errc::not_connected),
        voted(vote::granted)};
    const std::string first = seen.round(operation::acquire, errc::no_quorum, two_down);
    INFO(first);
    CHECK(first.starts_with("redlock: [] acquire: no quorum ("));
    CHECK(
        first.find("): 1 granted, 0 denied of 3; 2 needed; node timeout 120 ms; round 3 took ") !=
        std::string::npos);
    CHECK(first.ends_with(
        "\n  a: granted\n  b: no connection to it was ready\n  c: it is running a slow script\n"));
    CHECK(seen.round(operation::acquire, errc::no_quorum, two_down).empty());
    CHECK_FALSE(seen.round(operation::acquire, errc::no_quorum, others_down).empty());
    CHECK_FALSE(seen.round(operation::acquire, errc::held_by_other, others_down).empty());
    // The votes without reasons depend on which master answers first.
    CHECK(seen.round(
                  operation::acquire, errc::held_by_other,
                  {voted(vote::failed, master_errc::busy), voted(vote::unsent, master_errc::not_connected),
                   voted(vote::denied)})
              .empty());
    const std::string success = seen.round(operation::acquire, {}, all_granted);
    CHECK(success.find('\n') == success.size() - 1);
    // A release doesn't count as an acquire, nor an extension.
    CHECK(seen.round(operation::release, {}, all_granted).empty());
    CHECK(seen.round(operation::extend, {}, all_granted).empty());
    CHECK(seen.round(operation::acquire, {}, all_granted).empty());
}

TEST_CASE(
    "verbose: extensions are reported when they begin to fail, fail otherwise, or succeed again", "[verbose]")
{
    observed_journal seen;
    const std::vector<master_report> hung{
        voted(vote::granted), voted(vote::timed_out, master_errc::timed_out),
        voted(vote::timed_out, master_errc::timed_out)};
    const std::vector<master_report> broken{
        voted(vote::granted), voted(vote::failed, master_errc::connection_lost),
        voted(vote::timed_out, master_errc::timed_out)};
    CHECK_FALSE(seen.take(extension()).empty());
    CHECK(seen.take(extension()).empty());
    CHECK(
        seen.round(operation::extend, errc::no_quorum, hung).starts_with("redlock: [] extend: no quorum ("));
    CHECK(seen.round(operation::extend, errc::no_quorum, hung).empty());
    CHECK_FALSE(seen.round(operation::extend, errc::no_quorum, broken).empty());
    // Rounds of other operations don't interrupt the series.
    CHECK_FALSE(seen.round(operation::acquire, errc::no_quorum, hung).empty());
    CHECK_FALSE(seen.round(operation::release, errc::no_quorum, broken).empty());
    CHECK(seen.round(operation::extend, errc::no_quorum, broken).empty());
    CHECK_FALSE(seen.take(extension()).empty());
    CHECK(seen.take(extension()).empty());
    CHECK_FALSE(seen.round(operation::extend, errc::no_quorum, broken).empty());
}

TEST_CASE("journal: keeps the last round of an acquire, and no other", "[run]")
{
    observed_journal seen;
    CHECK_FALSE(seen.at().last_round());
    seen.round(operation::acquire, errc::no_quorum, {voted(vote::granted)});
    seen.round(operation::acquire, errc::held_by_other, all_granted);
    seen.round(operation::extend, errc::no_quorum, {voted(vote::granted)});
    seen.round(operation::release, errc::unconfirmed, {voted(vote::granted)});
    REQUIRE(seen.at().last_round());
    CHECK(seen.at().last_round()->result == errc::held_by_other);
    CHECK(seen.at().last_round()->masters().size() == 3);
}

TEST_CASE("journal: keeps the last failed extension until one succeeds", "[run]")
{
    observed_journal seen;
    seen.round(operation::release, errc::unconfirmed, all_granted);
    seen.round(operation::acquire, errc::no_quorum, all_granted);
    CHECK_FALSE(seen.at().failed_extension());
    seen.round(operation::extend, errc::no_quorum, {voted(vote::granted)});
    seen.round(operation::extend, errc::no_quorum, all_granted);
    REQUIRE(seen.at().failed_extension());
    CHECK(seen.at().failed_extension()->masters().size() == 3);
    SECTION("a round that extended the lease")
    {
        seen.round(operation::extend, {}, all_granted);
    }
    SECTION("the event of it")
    {
        seen.take(extension());
    }
    CHECK_FALSE(seen.at().failed_extension());
}

TEST_CASE("journal: keeps the last position in the queue, and reports each", "[run]")
{
    observed_journal seen;
    CHECK_FALSE(seen.at().position());
    seen.take(acquire_queued{"job", {.master = 1, .ahead = 2, .waiting = 5, .key_expires_in = 1s}, "b"});
    seen.take(acquire_queued{"job", {.master = 1, .ahead = 1, .waiting = 4, .key_expires_in = {}}, "b"});
    CHECK(seen.at().position()->ahead == 1);
    CHECK(seen.pushed(cli::event_kind::queued));
    CHECK_FALSE(seen.pushed(cli::event_kind::refused));
}

TEST_CASE("journal: connections count as refused once the system refuses too many for a quorum", "[run]")
{
    for (const int number : {EMFILE, ENFILE, ENOMEM, ENOBUFS})
    {
        CAPTURE(number);
        observed_journal seen;
        seen.take(master_down{0, "a", refused_by_system(EMFILE), ""});
        // One master that comes up, or is down for another reason, isn't refused.
        seen.take(master_up{0, "a", "run id"});
        seen.take(master_down{1, "b", refused_by_system(EMFILE), ""});
        seen.take(master_down{1, "b", boost::asio::error::connection_refused, ""});
        seen.take(master_down{2, "c", refused_by_system(EMFILE), ""});
        seen.take(master_down{2, "c", refused_by_system(EMFILE), ""});
        CHECK_FALSE(seen.at().is_refused());
        CHECK_FALSE(seen.pushed(cli::event_kind::refused));
        seen.take(master_down{0, "a", refused_by_system(number), ""});
        CHECK(seen.at().is_refused());
        CHECK(seen.pushed(cli::event_kind::refused));
        CHECK(seen.at().refusal().reason == refused_by_system(number));
        seen.take(master_down{1, "b", master_errc::timed_out, ""});
        CHECK(seen.at().refusal().reason == refused_by_system(number));
    }
}

TEST_CASE(
    "journal: warns once of each address that leads to the same server as another, with or without -v",
    "[run]")
{
    observed_journal seen{false};
    const auto same = [](std::size_t index, std::string name) {
        return master_down{index, std::move(name), master_errc::same_server, "run id f00"};
    };
    CHECK(seen.take(master_down{1, "b", master_errc::timed_out, ""}).empty());
    CHECK(
        seen.take(same(1, "b")) ==
        "redlock: warning: b: it is the same server as another master, so it has no "
        "vote (run id f00): give each server once\n");
    CHECK(seen.take(same(1, "b")).empty());
    CHECK_FALSE(seen.take(same(2, "c")).empty());
    CHECK(seen.take(same(2, "c")).empty());
}

TEST_CASE("mailbox: an event that is queued already isn't queued again, and each keeps its fields", "[run]")
{
    boost::asio::io_context io;
    cli::mailbox box{io};
    const cli::event first{.kind = cli::event_kind::signal, .signal = SIGTERM, .from_terminal = true};
    const std::vector<cli::event> others{
        {.kind = cli::event_kind::signal, .signal = SIGCONT, .from_terminal = true},
        {.kind = cli::event_kind::signal, .signal = SIGTERM},
        {.kind = cli::event_kind::lost, .signal = SIGTERM, .from_terminal = true},
        {.kind = cli::event_kind::signal,
         .signal = SIGTERM,
         .from_terminal = true,
         .error = errc::lease_lost}};
    box.push(first);
    CHECK(box.contains(first));
    for (const cli::event& each : others)
    {
        CHECK_FALSE(box.contains(each));
        box.push(each);
        box.push(first);
        box.push(each);
    }
    std::vector<cli::event> taken;
    const auto take = [&](std::exception_ptr, const cli::event& next) { taken.push_back(next); };
    for (std::size_t time = 0; time <= others.size() + 1; ++time)
    {
        co_spawn(io, box.next(), take);
        io.poll();
        io.restart();
    }
    // The one that waits for more is destroyed with the io_context.
    REQUIRE(taken.size() == 1 + others.size());
    CHECK(taken.front() == first);
    CHECK(std::equal(others.begin(), others.end(), taken.begin() + 1));
}

} // namespace redlock::test
