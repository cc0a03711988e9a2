// SPDX-License-Identifier: BSL-1.0
// What `redlock provision` says about masters that aren't armed.
#include "cli/provision/provision_output.hpp"

#include <redlock/provision.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <initializer_list>
#include <string>

namespace redlock::test
{

namespace
{

provision_report report_with(provision_outcome outcome, std::initializer_list<provision_finding> found)
{
    provision_report made;
    made.outcome = outcome;
    made.group = "0123456789abcdef";
    for (const provision_finding each : found)
    {
        provisioned_master& one = made.masters.emplace_back();
        one.name = "redis://" + std::string(1, static_cast<char>('a' + made.masters.size() - 1));
        one.found = each;
    }
    return made;
}

} // namespace

TEST_CASE("provision: a run that takes over announces that it may wait for the other's max_ttl")
{
    config masters;
    masters.masters = {"redis://a", "redis://b", "redis://c"};
    provision_options options{.max_ttl = std::chrono::seconds{2}};
    const std::string alone = cli::intention(options, masters);
    CHECK(alone.find("waits 2.022 s, and arms them") != std::string::npos);
    options.takeover = true;
    CHECK(
        cli::intention(options, masters)
            .find("waits 2.022 s, or longer if the max_ttl of the other run is, and arms them") !=
        std::string::npos);
}

TEST_CASE("provision: the last line counts the members that are armed, and has the next step")
{
    const auto armed = provision_finding::armed;
    const auto waits = provision_finding::in_service;
    const auto gone = provision_finding::unknown;
    const auto left = provision_finding::left_group;
    const auto conclusion = [](provision_outcome outcome, std::initializer_list<provision_finding> found,
                               std::size_t members, const char* advice)
    {
        provision_report report = report_with(outcome, found);
        report.advice = advice;
        return cli::conclusion_of(report, members);
    };
    const std::string group = "group 0123456789abcdef: ";
    SECTION("of a change, without the masters that leave")
    {
        CHECK(
            conclusion(provision_outcome::incomplete, {armed, armed, gone}, 2, "do this") ==
            group + "2 masters are armed, but the change isn't finished: do this");
        CHECK(
            conclusion(provision_outcome::incomplete, {armed, waits, waits, left}, 3, "do this") ==
            group + "1 of 3 masters is armed, but the change isn't finished: do this");
    }
    SECTION("of a run that has armed a quorum")
    {
        CHECK(
            conclusion(provision_outcome::provisioned, {armed, gone, armed}, 3, "do this") ==
            group + "2 of 3 masters are armed now; do this");
        CHECK(
            conclusion(provision_outcome::complete, {armed, gone, armed}, 3, "do this") ==
            group + "2 of 3 masters were armed already; do this");
    }
    SECTION("of one master")
    {
        CHECK(conclusion(provision_outcome::provisioned, {armed}, 1, "") == group + "1 master is armed now");
        CHECK(
            conclusion(provision_outcome::complete, {armed}, 1, "") == group + "1 master was armed already");
    }
    SECTION("of a run that was refused")
    {
        CHECK(
            conclusion(provision_outcome::unchanged, {waits}, 1, "do this") ==
            "no master was changed: do this");
        CHECK(
            conclusion(provision_outcome::unfinished, {waits}, 1, "do this") ==
            "group 0123456789abcdef is unfinished: do this");
        CHECK(
            conclusion(provision_outcome::unfinished, {waits}, 1, "") ==
            "group 0123456789abcdef is unfinished: run the same command again, which continues");
    }
}

TEST_CASE("provision: the line about a master has no step that depends on the other masters")
{
    using enum provision_finding;
    provision_report report = report_with(
        provision_outcome::unchanged, {armed, in_service, other_group, other_run, emptied, changed});
    report.masters[2].detail = "it has left group 0123456789abcdef";
    CHECK(
        cli::text_of(report, 6) == "redis://a  is armed\n"
                                   "redis://b  isn't armed\n"
                                   "redis://c  can't take part (it has left group 0123456789abcdef)\n"
                                   "redis://d  belongs to an unfinished run with other masters or options\n"
                                   "redis://e  has lost its data\n"
                                   "redis://f  has changed meanwhile\n"
                                   "no master was changed\n");
}

} // namespace redlock::test
