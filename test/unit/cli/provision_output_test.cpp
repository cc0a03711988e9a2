// SPDX-License-Identifier: BSL-1.0
// What `redlock provision` says about masters that aren't armed.
#include "cli/provision/provision_output.hpp"

#include <redlock/provision.hpp>

#include <catch2/catch_test_macros.hpp>

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

TEST_CASE("provision: a change with too few armed masters names the command that arms the others")
{
    const auto armed = provision_finding::armed;
    const auto waits = provision_finding::in_service;
    const auto left = provision_finding::left_group;
    CHECK(
        cli::conclusion_of(report_with(provision_outcome::incomplete, {armed, waits, waits, left}), 3) ==
        "group 0123456789abcdef: 1 of 3 masters are armed, too few for clients to arm the others: run "
        "redlock "
        "provision --again 0123456789abcdef with the members, then the same command again");
    CHECK(
        cli::conclusion_of(report_with(provision_outcome::incomplete, {armed, armed, waits, left}), 3)
            .find("--again") == std::string::npos);
}

TEST_CASE("provision: a master that clients arm is said to need no other command")
{
    const auto armed = provision_finding::armed;
    const auto waits = provision_finding::in_service;
    CHECK(
        cli::text_of(report_with(provision_outcome::unchanged, {armed, armed, waits}), 3) ==
        "redis://a  is armed\n"
        "redis://b  is armed\n"
        "redis://c  belongs to a group that is in use: its clients arm it again\n"
        "no master was changed\n");
    CHECK(
        cli::text_of(report_with(provision_outcome::unchanged, {armed, waits, waits}), 3)
            .find("arm it again, or redlock provision --again does") != std::string::npos);
}

} // namespace redlock::test
