// SPDX-License-Identifier: BSL-1.0
// The doctor's findings for each cause. They are in findings.txt. After an intended change:
// REDLOCK_RECORD_GOLDEN=1 cli_unit_tests "findings*"
#include "unit/cli/facts.hpp"

#include <redlock/error.hpp>

#include <boost/asio/error.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;
using cli::master_facts;
using cli::probe;
using cli::probe_step;

namespace
{

constexpr const char* unnamed_in_script =
    "ERR The user executing the script can't run this command or subcommand script: f00";

std::string in_words(const std::vector<cli::finding>& found)
{
    std::string text;
    for (const cli::finding& each : found)
    {
        text += fmt::format(
            "  {} {}: {}. {}. {}.\n", to_string(each.level), each.kind, each.seen(), each.meaning,
            each.advice);
    }
    return text.empty() ? "  none\n" : text;
}

/// Collects findings, each with its cause.
class collection
{
  public:
    void add(std::string_view cause, const master_facts& one, const std::vector<master_facts>& others = {})
    {
        std::vector<master_facts> all = others;
        all.push_back(one);
        text_ += fmt::format("{}:\n{}", cause, in_words(findings_of(one, all)));
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

void add_failures(collection& to)
{
    master_facts one = good_facts();
    one.examined.detail = "ERR as it said";
    for (int value = 1; to_string(static_cast<master_errc>(value)) != "unknown"; ++value)
    {
        one.examined.reason = static_cast<master_errc>(value);
        to.add(to_string(static_cast<master_errc>(value)), one);
    }
    one.examined.reason = master_errc::authentication_failed;
    one.examined.detail.clear();
    to.add("no detail", one);
    one.examined.reason = boost::asio::error::connection_refused;
    to.add("an error of the system", one);
    one.examined.reason = boost::asio::error::connection_reset;
    to.add("a connection that is reset", one);
    master_facts unknown = one;
    unknown.examined.server.clear();
    to.add("a connection that is reset by the first command", unknown);
    one.examined.reason = error_code{EMFILE, boost::system::system_category()};
    to.add("a refusal by the system", one);
    one.examined.reason = master_errc::connect_timed_out;
    one.examined.detail = "the TLS handshake wasn't answered";
    to.add("no TLS on that port", one);
    one.examined.reason = master_errc::command_failed;
    one.examined.detail = "DENIED Redis is running in protected mode";
    to.add("protected mode", one);
    one.examined.reason = master_errc::same_server;
    one.examined.detail = "run id run-id-of-redis://10.0.0.3:6379";
    master_facts unusable = good_facts("redis://10.0.0.3:6379");
    unusable.examined.reason = master_errc::timed_out;
    master_facts unidentified = good_facts("redis://10.0.0.4:6379");
    unidentified.examined.run_id.clear();
    to.add(
        "another address of one of several masters", one,
        {unidentified, good_facts("redis://10.0.0.2:6379"), unusable, good_facts("redis://10.0.0.3:6379")});
}

void add_standings(collection& to)
{
    for (const master_errc why :
         {master_errc::not_provisioned, master_errc::quarantined, master_errc::incarnation_changed,
          master_errc::other_group, master_errc::not_a_member, master_errc::no_permission})
    {
        master_facts one = good_facts();
        one.examined.guarded.emplace();
        one.examined.guarded->reason = why;
        if (why == master_errc::quarantined)
        {
            one.examined.guarded->armed_in = 12'340ms;
        }
        to.add(fmt::format("guarded: {}", to_string(why)), one);
    }
    master_facts armed = good_facts();
    armed.examined.guarded.emplace();
    to.add("guarded: armed", armed);
    armed.examined.guarded->reason = master_errc::no_permission;
    armed.examined.guarded->detail = "NOPERM (HSET)";
    to.add("guarded: armed, but refuses a command of its vote", armed);
}

/// Returns a master that doesn't vote, with its next step. It shows the group 0123456789abcdef of three masters, or none.
master_facts unarmed(master_errc why, bool shows_group, guarded_advice advice)
{
    master_facts one = good_facts();
    guarded_examination& its = one.examined.guarded.emplace();
    its.reason = why;
    advice.group = "0123456789abcdef";
    if (shows_group)
    {
        its.group = "0123456789abcdef";
        its.seat = 1;
        its.masters = 3;
        its.max_ttl = 60s;
    }
    its.advice = std::move(advice);
    return one;
}

void add_steps(collection& to)
{
    using enum guarded_step;
    using enum master_errc;
    const std::vector<std::string> one{"redis://b:1"};
    const std::vector<std::string> two{"redis://b:1", "redis://c:1"};
    const auto add = [&to](guarded_step step, const master_facts& facts, std::string_view more = {})
    { to.add(fmt::format("step {}{}", to_string(step), more), facts, {good_facts("redis://b:1")}); };
    add(none, unarmed(other_group, true, {}), " for other values of its group");
    add(provision, unarmed(not_provisioned, false, {.step = provision}));
    add(finish_provision, unarmed(quarantined, true, {.step = finish_provision}));
    add(use_group_list, unarmed(not_provisioned, true, {.step = use_group_list, .lacking = two}),
        " of a list that is too short");
    add(use_group_list, unarmed(not_provisioned, true, {.step = use_group_list}), " without a record");
    master_facts of_two =
        unarmed(quarantined, true, {.step = use_group_list, .lacking = one, .unknown = two});
    of_two.examined.guarded->masters = 2;
    add(use_group_list, of_two, " of a list with wrong addresses");
    add(use_latest_group, unarmed(other_group, true, {.step = use_latest_group}));
    add(use_latest_group, unarmed(other_group, true, {.step = use_latest_group, .lacking = one}),
        " whose record is shown");
    master_facts left = unarmed(other_group, true, {.step = use_latest_group});
    left.examined.guarded->advice.group.clear();
    add(use_latest_group, left, " that no member shows");
    add(use_recorded_name, unarmed(incarnation_changed, true, {.step = use_recorded_name, .lacking = two}));
    add(check_address, unarmed(not_provisioned, false, {.step = check_address, .lacking = one}));
    add(check_address, unarmed(not_provisioned, false, {.step = check_address}), " without a record");
    add(check_empty, unarmed(not_provisioned, true, {.step = check_empty, .concerned = two}));
    add(check_empty, unarmed(not_provisioned, false, {.step = check_empty, .concerned = two}),
        " if it is empty");
    add(check_empty, unarmed(quarantined, true, {.step = check_empty}), " if none is empty");
    const guarded_advice wait{.step = wait_for_clients, .within = 63'602ms};
    add(wait_for_clients, unarmed(quarantined, true, wait));
    master_facts refusing = unarmed(quarantined, true, wait);
    refusing.examined.risks.push_back({risk::arming_refused, "HVALS: ERR as it said"});
    add(wait_for_clients, refusing, " if it refuses a command of arming");
    refusing.examined.risks = {{risk::eviction, "maxmemory-policy is allkeys-lru"}};
    add(wait_for_clients, refusing, " if it may evict keys");
    add(bring_back, unarmed(quarantined, true, {.step = bring_back, .concerned = one}));
    add(bring_back, unarmed(not_provisioned, true, {.step = bring_back, .concerned = two}), " of two");
    add(mend_others, unarmed(quarantined, true, {.step = mend_others, .concerned = one}));
    add(arm, unarmed(quarantined, true, {.step = arm}));
    add(check_version, unarmed(other_group, false, {.step = check_version}));
    add(arm_again, unarmed(not_a_member, true, {.step = arm_again}));
    add(arm_again, unarmed(not_provisioned, false, {.step = arm_again, .concerned = one}),
        " with an empty server");
    add(arm_again, unarmed(not_provisioned, true, {.step = arm_again, .concerned = two}),
        " with empty servers");
}

void add_risks(collection& to)
{
    for (int value = 0; to_string(static_cast<risk>(value)) != "unknown"; ++value)
    {
        master_facts one = good_facts();
        one.examined.risks.push_back({static_cast<risk>(value), "as observed"});
        to.add(fmt::format("risk {}", to_string(static_cast<risk>(value))), one);
    }
    master_facts evicting = good_facts();
    evicting.examined.risks.push_back({risk::arming_refused, "maxmemory-policy isn't noeviction"});
    to.add("risk arming_refused, because it may evict keys", evicting);
    using enum master_errc;
    for (const auto& [reason, text] : std::vector<std::pair<error_code, std::string>>{
             {no_permission, "ERR The user executing the script can't run this command or subcommand"},
             {command_failed, "ERR Unknown Redis command called from script"},
             {command_failed, "WRONGTYPE Operation against a key holding the wrong kind of value"},
             {command_failed, "ERR as it said"},
             {out_of_memory, "OOM command not allowed when used memory > 'maxmemory'."},
             {no_replicas, "NOREPLICAS Not enough good replicas to write."},
             {misconfigured, "MISCONF Redis is configured to save RDB snapshots"}})
    {
        master_facts one = good_facts();
        one.examined.risks.push_back({risk::arming_refused, "HSET: " + text, reason});
        to.add("risk arming_refused: " + text, one);
    }
}

void add_times(collection& to)
{
    for (const std::chrono::nanoseconds median :
         {std::chrono::nanoseconds{0}, std::chrono::nanoseconds{25ms} - 1ns, std::chrono::nanoseconds{25ms},
          std::chrono::nanoseconds{50ms} - 1ns, std::chrono::nanoseconds{50ms}})
    {
        master_facts one = good_facts();
        one.examined.median_round_trip = median;
        to.add(fmt::format("a median of {} ns", median.count()), one);
    }
    for (const std::chrono::nanoseconds slowest :
         {std::chrono::nanoseconds{25ms} - 1ns, std::chrono::nanoseconds{25ms},
          std::chrono::nanoseconds{50ms} - 1ns, std::chrono::nanoseconds{50ms},
          std::chrono::nanoseconds{500ms} - 1ns, std::chrono::nanoseconds{500ms}})
    {
        master_facts one = good_facts();
        one.probed->at(probe_step::extend).took = slowest;
        one.probed->tries = 3;
        to.add(fmt::format("a probe's answer after {} ns", slowest.count()), one);
    }
    master_facts one = good_facts();
    one.probed->at(probe_step::release).took = 60ms;
    one.examined.median_round_trip = 30ms;
    to.add("slow answers to the probe and slow round trips", one);
    one.examined.median_round_trip = 1ms;
    fail(*one.probed, probe_step::inspect, master_errc::no_permission, "NOPERM to run the 'eval' command");
    to.add("slow answers to a probe that failed", one);
    one = good_facts();
    one.probed->queue_refusal = "it refuses the scripts of the queue (NOPERM to run the 'zadd' command)";
    to.add("a client can't wait", one);
    one.examined.risks.push_back({risk::limited_queue, "as observed"});
    to.add("a client can't wait, as the examination has shown", one);
}

void add_settings(collection& to)
{
    master_facts open = good_facts();
    open.is_open = true;
    to.add("open, on another machine", open);
    open.is_local = true;
    to.add("open, on this machine", open);
    struct settings
    {
        std::optional<std::string> appendonly;
        std::optional<std::string> appendfsync;
        std::optional<std::string> save;
    };
    const std::vector<settings> all{
        {},
        {{}, "always", "3600 1"},
        {"yes", {}, "3600 1"},
        {"no", "always", {}},
        {"no", {}, ""},
        {"no", "always", "3600 1"},
        {"yes", "everysec", "3600 1"},
        {"yes", "no", ""},
        {"yes", "always", ""}};
    for (const auto& [appendonly, appendfsync, save] : all)
    {
        master_facts one = good_facts();
        one.examined.appendonly = appendonly;
        one.examined.appendfsync = appendfsync;
        one.examined.save = save;
        const std::string name = fmt::format(
            "appendonly {}, appendfsync {}, save '{}'", appendonly.value_or("unknown"),
            appendfsync.value_or("unknown"), save.value_or("unknown"));
        to.add(name, one);
        one.examined.guarded.emplace();
        to.add("guarded, " + name, one);
    }
}

struct failed_step
{
    probe_step step;
    master_errc reason;
    const char* detail;
};

void add_probe(collection& to, std::string_view cause, const std::vector<failed_step>& steps)
{
    master_facts one = good_facts();
    for (const failed_step& each : steps)
    {
        fail(*one.probed, each.step, each.reason, each.detail);
        if (each.step == probe_step::acquire)
        {
            one.probed->at(probe_step::extend) = {};
            one.probed->at(probe_step::release) = {};
        }
    }
    to.add(cause, one);
}

void add_missing_commands(collection& to)
{
    constexpr auto forbidden = master_errc::no_permission;
    constexpr auto failed = master_errc::command_failed;
    add_probe(to, "SET forbidden", {{probe_step::acquire, forbidden, "NOPERM to run the 'SET' command"}});
    add_probe(
        to, "SET and EVAL forbidden",
        {{probe_step::acquire, forbidden, "NOPERM to run the 'set' command"},
         {probe_step::inspect, forbidden, "NOPERM to run the 'eval' command"}});
    add_probe(to, "no name", {{probe_step::release, forbidden, "NOPERM"}});
    add_probe(
        to, "EVALSHA forbidden",
        {{probe_step::extend, forbidden, "NOPERM to run the 'evalsha' command"},
         {probe_step::release, forbidden, "NOPERM to run the 'evalsha' command"}});
    add_probe(to, "PEXPIRE forbidden", {{probe_step::extend, forbidden, unnamed_in_script}});
    add_probe(to, "DEL forbidden", {{probe_step::release, forbidden, unnamed_in_script}});
    add_probe(
        to, "GET forbidden",
        {{probe_step::inspect, forbidden, unnamed_in_script},
         {probe_step::extend, forbidden, unnamed_in_script},
         {probe_step::release, forbidden, unnamed_in_script}});
    add_probe(
        to, "PTTL forbidden",
        {{probe_step::inspect, forbidden, unnamed_in_script},
         {probe_step::extend, forbidden, unnamed_in_script}});
    add_probe(
        to, "PEXPIRE and DEL forbidden",
        {{probe_step::extend, forbidden, unnamed_in_script},
         {probe_step::release, forbidden, unnamed_in_script}});
    // One step alone can't show which of its candidates is missing.
    add_probe(
        to, "EVAL and PEXPIRE forbidden",
        {{probe_step::inspect, forbidden, "NOPERM to run the 'eval' command"},
         {probe_step::extend, forbidden, unnamed_in_script}});
    add_probe(
        to, "PEXPIRE unknown",
        {{probe_step::extend, failed, "ERR unknown command 'PEXPIRE', with args beginning with: "}});
    add_probe(
        to, "PEXPIRE unknown in a script",
        {{probe_step::extend, failed, "ERR Unknown Redis command called from script script: f00"}});
    add_probe(
        to, "EVAL unknown, DEL forbidden",
        {{probe_step::inspect, failed, "ERR unknown command 'EVAL', with args beginning with: "},
         {probe_step::release, forbidden, "ERR ACL failure in script: NOPERM to run the 'del' command"}});
}

void add_other_failures(collection& to)
{
    using enum master_errc;
    add_probe(
        to, "keys forbidden",
        {{probe_step::acquire, no_permission, "NOPERM No permissions to access a key"},
         {probe_step::inspect, no_permission, "NOPERM No permissions to access a key"}});
    add_probe(to, "no answer to the inspection", {{probe_step::inspect, timed_out, ""}});
    add_probe(to, "no answer to the extension", {{probe_step::extend, timed_out, ""}});
    add_probe(to, "disconnected during the release", {{probe_step::release, unresponsive, ""}});
    for (const master_errc each :
         {out_of_memory, no_replicas, misconfigured, read_only, busy, connection_lost})
    {
        add_probe(
            to, fmt::format("refused: {}", to_string(each)), {{probe_step::acquire, each, "as it said"}});
    }
    add_probe(
        to, "the same refusal twice, and another",
        {{probe_step::inspect, busy, "BUSY first"},
         {probe_step::extend, busy, "BUSY second"},
         {probe_step::release, loading, "LOADING third"}});
    for (const probe_step each : {probe_step::inspect, probe_step::extend, probe_step::release})
    {
        master_facts one = good_facts();
        one.probed->at(each).key_gone = true;
        to.add(fmt::format("key gone at step {}", static_cast<int>(each)), one);
    }
    master_facts one = good_facts();
    one.probed.reset();
    to.add("no probe", one);
    to.add("no finding", good_facts());
    // All kinds at once, in their order.
    one = good_facts();
    one.is_open = true;
    one.examined.risks = {{risk::clock, "first"}, {risk::eviction, "second"}};
    one.examined.median_round_trip = 30ms;
    one.examined.appendonly = "no";
    fail(*one.probed, probe_step::release, master_errc::no_permission, "NOPERM to run the 'del' command");
    to.add("all kinds", one);
}

std::string all_findings()
{
    collection all;
    add_failures(all);
    add_standings(all);
    add_steps(all);
    add_risks(all);
    add_times(all);
    add_settings(all);
    add_missing_commands(all);
    add_other_failures(all);
    return all.text();
}

/// Returns the findings of each cause.
std::map<std::string, std::string> by_cause(std::istream& lines)
{
    std::map<std::string, std::string> all;
    std::string cause;
    for (std::string line; std::getline(lines, line);)
    {
        if (line.starts_with(' '))
        {
            all[cause] += line + '\n';
        }
        else
        {
            cause = line;
        }
    }
    return all;
}

} // namespace

TEST_CASE("findings: each cause has its level, kind, meaning and advice", "[doctor]")
{
    const std::string now = all_findings();
    if (std::getenv("REDLOCK_RECORD_GOLDEN") != nullptr) // NOLINT: before any thread is started.
    {
        std::ofstream{REDLOCK_FINDINGS} << now;
    }
    std::ifstream file{REDLOCK_FINDINGS};
    REQUIRE(file);
    const std::map<std::string, std::string> expected = by_cause(file);
    std::istringstream measured{now};
    const std::map<std::string, std::string> found = by_cause(measured);
    CHECK(found.size() == expected.size());
    for (const auto& [cause, findings] : found)
    {
        CAPTURE(cause);
        REQUIRE(expected.contains(cause));
        CHECK(findings == expected.at(cause));
    }
}

} // namespace redlock::test
