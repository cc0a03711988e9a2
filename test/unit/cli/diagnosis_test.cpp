// SPDX-License-Identifier: BSL-1.0
// The doctor's verdicts, and the diagnosis as JSON and text.
#include "cli/doctor/diagnosis.hpp"
#include "cli/doctor/diagnosis_json.hpp"
#include "cli/doctor/diagnosis_text.hpp"

#include "unit/cli/facts.hpp"

#include <boost/json/serialize.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;
using cli::master_facts;
using cli::probe_step;

namespace
{

/// Returns facts with a failure (u), a warning (w), a note (n), a note and a warning (b), or none (g).
master_facts facts_of(char letter, std::size_t number)
{
    master_facts one = good_facts(fmt::format("redis://10.0.0.{}:6379", number));
    if (letter == 'u')
    {
        one.examined.reason = master_errc::timed_out;
    }
    if (letter == 'w' || letter == 'b')
    {
        one.examined.risks.push_back({risk::eviction, "maxmemory-policy is volatile-lru"});
    }
    if (letter == 'n' || letter == 'b')
    {
        one.examined.appendonly = "no";
    }
    return one;
}

cli::diagnosis of(std::string_view letters)
{
    std::vector<master_facts> all;
    for (const char each : letters)
    {
        all.push_back(facts_of(each, all.size() + 1));
    }
    return cli::diagnose(all);
}

/// Returns the line of a finding about the setting appendonly no.
std::string forgets(std::string_view whose)
{
    return fmt::format(
        "{}: note: appendonly no. A restart loses every lock, and a lock may have two holders. Set "
        "appendonly yes and "
        "appendfsync always; or keep it out of reach after a restart until the longest ttl has passed.\n",
        whose);
}

std::string in_json(const cli::diagnosis& all)
{
    return boost::json::serialize(cli::json_of(all));
}

} // namespace

TEST_CASE("diagnosis: the verdict on all masters follows from their findings", "[doctor]")
{
    struct expected
    {
        const char* masters;
        const char* verdict;
        std::size_t usable;
        std::size_t quorum;
        std::size_t may_fail;
        int exit_code;
    };
    for (const expected& each : std::vector<expected>{
             {"g", "good", 1, 1, 0, 0},
             {"w", "usable", 1, 1, 0, 1},
             {"u", "unusable", 0, 1, 0, 69},
             {"gg", "good", 2, 2, 0, 0},
             {"gu", "unusable", 1, 2, 0, 69},
             {"nnn", "good", 3, 2, 1, 0},
             {"ggu", "usable", 2, 2, 0, 1},
             {"ugg", "usable", 2, 2, 0, 1},
             {"wng", "usable", 3, 2, 1, 1},
             {"gbg", "usable", 3, 2, 1, 1},
             {"uug", "unusable", 1, 2, 0, 69},
             {"wwuuu", "unusable", 2, 3, 0, 69},
             {"wwwuu", "usable", 3, 3, 0, 1},
             {"ggggg", "good", 5, 3, 2, 0},
             {"gggggg", "good", 6, 4, 2, 0}})
    {
        CAPTURE(each.masters);
        const cli::diagnosis all = of(each.masters);
        CHECK(to_string(all.result) == each.verdict);
        CHECK(all.usable == each.usable);
        CHECK(all.quorum == each.quorum);
        CHECK(all.may_fail() == each.may_fail);
        CHECK(cli::number_of(cli::exit_code_of(all)) == each.exit_code);
        REQUIRE(all.masters.size() == std::string_view{each.masters}.size());
        for (std::size_t index = 0; index < all.masters.size(); ++index)
        {
            const char letter = each.masters[index];
            const char* one = letter == 'u' ? "unusable" : letter == 'w' || letter == 'b' ? "usable" : "good";
            CHECK(to_string(all.masters[index].result) == one);
        }
    }
}

TEST_CASE(
    "diagnosis: a probe that is repeated keeps the faster times, and none of a step that fails", "[doctor]")
{
    const auto measured = [](std::chrono::nanoseconds acquire, std::chrono::nanoseconds release)
    {
        cli::probe one;
        one.at(probe_step::acquire) = {.tried = true, .reason = {}, .detail = {}, .took = acquire};
        one.at(probe_step::release) = {.tried = true, .reason = {}, .detail = {}, .took = release};
        return one;
    };
    cli::probe all;
    all.add(measured(30ms, 40ms));
    all.add(measured(50ms, 20ms));
    CHECK(all.tries == 2);
    CHECK(all.at(probe_step::acquire).took == 30ms);
    CHECK(all.at(probe_step::release).took == 20ms);
    cli::probe refused;
    refused.at(probe_step::acquire) = {
        .tried = true, .reason = master_errc::out_of_memory, .detail = "OOM", .took = {}};
    all.add(refused);
    CHECK(all.tries == 3);
    CHECK(all.at(probe_step::acquire).reason == master_errc::out_of_memory);
    CHECK_FALSE(all.at(probe_step::acquire).took);
    CHECK_FALSE(all.at(probe_step::release).tried);
    CHECK_FALSE(all.at(probe_step::release).took);
    CHECK(all.slowest() == 0ms);
}

TEST_CASE("diagnosis: the exit code is 71 if the system's refusals prevent a quorum", "[doctor]")
{
    const error_code refused{EMFILE, boost::system::system_category()};
    const auto code_with = [&refused](std::size_t refusals, bool by_probe)
    {
        std::vector<master_facts> all;
        for (std::size_t number = 1; number <= 3; ++number)
        {
            all.push_back(facts_of('g', number));
            if (number <= refusals && by_probe)
            {
                fail(*all.back().probed, probe_step::acquire, refused);
            }
            else if (number <= refusals)
            {
                all.back().examined.reason = refused;
            }
        }
        return cli::number_of(cli::exit_code_of(cli::diagnose(all)));
    };
    for (const bool by_probe : {false, true})
    {
        CAPTURE(by_probe);
        CHECK(code_with(0, by_probe) == 0);
        CHECK(code_with(1, by_probe) == 1);
        CHECK(code_with(2, by_probe) == 71);
        CHECK(code_with(3, by_probe) == 71);
    }
}

TEST_CASE("diagnosis: every key of the JSON has its own value", "[doctor]")
{
    cli::diagnosis all;
    all.result = cli::verdict::usable;
    all.usable = 5;
    all.quorum = 3;
    cli::master_diagnosis& one = all.masters.emplace_back();
    one.facts = good_facts("redis://a:1");
    one.result = cli::verdict::unusable;
    one.facts.examined.server = "valkey 8.0.1";
    one.facts.examined.run_id = "f00";
    one.facts.examined.fastest_round_trip = 1'000'001ns;
    one.facts.examined.median_round_trip = 2ms;
    one.facts.examined.appendonly = "yes";
    one.facts.examined.appendfsync = "everysec";
    one.facts.examined.save = "3600 1";
    one.facts.examined.guarded = {master_errc::quarantined, "0123456789abcdef", 2, 60s, 1500ms};
    one.facts.examined.guarded->masters = 5;
    one.facts.examined.guarded->policy = arming_policy::by_hand;
    one.facts.examined.guarded->advice.step = guarded_step::arm;
    one.facts.probed->at(probe_step::inspect).took = 9ms;
    one.findings.push_back(
        {cli::severity::warning, "slow", "it took", "it means", "do this",
         std::chrono::nanoseconds{4'560us}});
    one.findings.push_back({cli::severity::note, "other", "it \"is\"", "no time", "nothing"});
    CHECK(
        in_json(all) ==
        "{\"verdict\":\"usable\",\"usable\":5,\"quorum\":3,\"may_fail\":2,\"masters\":[{\"master\":\"redis://"
        "a:1\",\"verdict\":\"unusable\",\"server\":\"valkey "
        "8.0.1\",\"run_id\":\"f00\",\"fastest_round_trip_us\":"
        "1001,\"median_round_trip_us\":2000,\"acquire_us\":1000,\"extend_us\":2000,\"release_us\":3000,"
        "\"appendonly\":\"yes\",\"appendfsync\":\"everysec\",\"save\":\"3600 1\",\"guarded\":{\"armed\":"
        "false,\"reason\":\"quarantined\",\"group\":\"0123456789abcdef\",\"seat\":2,\"masters\":5,\"max_ttl_"
        "ms\":"
        "60000,\"policy\":\"operator\",\"armed_in_ms\":1500,\"next_step\":\"arm\"},\"findings\":[{\"level\":"
        "\"warning\",\"kind\":\"slow\",\"what\":\"it took 4.56 ms\",\"meaning\":\"it means\",\"advice\":\"do "
        "this\"},{\"level\":\"note\",\"kind\":\"other\",\"what\":\"it \\\"is\\\"\",\"meaning\":\"no time\","
        "\"advice\":\"nothing\"}]}]}");
}

TEST_CASE("diagnosis: what is unknown is null in the JSON, and an empty setting is not", "[doctor]")
{
    cli::diagnosis all;
    all.result = cli::verdict::unusable;
    all.quorum = 1;
    cli::master_diagnosis& one = all.masters.emplace_back();
    one.facts.examined.name = "unix:///run/\xff";
    one.result = cli::verdict::unusable;
    const std::string unknown =
        "{\"verdict\":\"unusable\",\"usable\":0,\"quorum\":1,\"may_fail\":0,\"masters\":[{\"master\":\"unix:/"
        "//"
        "run/"
        "\xef\xbf\xbd\",\"verdict\":\"unusable\",\"server\":null,\"run_id\":null,\"fastest_round_trip_us\":"
        "null,\"median_round_trip_us\":null,\"acquire_us\":null,\"extend_us\":null,\"release_us\":null,"
        "\"appendonly\":null,\"appendfsync\":null,\"save\":null,\"guarded\":null,\"findings\":[]}]}";
    CHECK(in_json(all) == unknown);
    // A probe without a lock measures nothing.
    one.facts.probed = cli::probe{};
    fail(*one.facts.probed, probe_step::acquire, master_errc::busy);
    CHECK(in_json(all) == unknown);
    one.facts.examined.save = "";
    CHECK(in_json(all).find("\"save\":\"\"") != std::string::npos);
    one.facts.examined.guarded.emplace(); // Armed, and nothing else is known.
    CHECK(
        in_json(all).find("\"guarded\":{\"armed\":true,\"reason\":null,\"group\":null,\"seat\":null,"
                          "\"masters\":null,\"max_ttl_ms\":null,\"policy\":null,\"armed_in_ms\":null,"
                          "\"next_step\":null}") != std::string::npos);
}

TEST_CASE("diagnosis: a line describes each group of guarded mode that a master shows", "[doctor][guarded]")
{
    const auto with_groups = [](const std::vector<std::string>& groups)
    {
        std::vector<master_facts> masters;
        for (const std::string& each : groups)
        {
            guarded_examination& its =
                masters.emplace_back(facts_of('g', masters.size() + 1)).examined.guarded.emplace();
            its.group = each.substr(0, 1);
            its.seat = 1;
            its.masters = 5;
            its.max_ttl = each == "a, older" ? 30s : 60s;
            its.policy = each == "b" ? arming_policy::by_hand : arming_policy::clocks;
        }
        const std::string text = cli::text_of(cli::diagnose(masters));
        const std::size_t begins = text.find("\n\n") + 1;
        return text.substr(begins, text.find("\n\n", begins) - begins);
    };
    CHECK(with_groups({"a", "a"}) == "\ngroup a: 5 masters, max_ttl 1 m, policy clocks");
    CHECK(
        with_groups({"a", "", "b"}) ==
        "\ngroup a: 5 masters, max_ttl 1 m, policy clocks; 1 of 3 of this list show it\n"
        "group b: 5 masters, max_ttl 1 m, policy operator; 1 of 3 of this list show it");
    CHECK(
        with_groups({"a, older", "a", "a"}) ==
        "\ngroup a: 5 masters, max_ttl 30 s, policy clocks; 1 of 3 of this list show it\n"
        "group a: 5 masters, max_ttl 1 m, policy clocks; 2 of 3 of this list show it");
    CHECK(with_groups({"", ""}).find("group") == std::string::npos);
}

TEST_CASE("diagnosis: the text has a row for each master, and a line for each finding", "[doctor]")
{
    std::vector<master_facts> masters{facts_of('g', 1), facts_of('u', 22), facts_of('b', 3)};
    masters[0].examined.server = "valkey 8.0.1";
    masters[1].examined.server.clear();
    masters[1].examined.fastest_round_trip = 0ns;
    masters[1].examined.median_round_trip = 0ns;
    masters[1].probed.reset();
    masters[2].examined.fastest_round_trip = 12'345us;
    CHECK(
        cli::text_of(cli::diagnose(masters)) ==
        "master                  server        fastest   median   lock     persistence         verdict\n"
        "redis://10.0.0.1:6379   valkey 8.0.1  0.10 ms   0.20 ms  3.00 ms  appendfsync always  good\n"
        "redis://10.0.0.22:6379  -             -         -        -        -                   unusable\n"
        "redis://10.0.0.3:6379   redis 7.0.15  12.35 ms  0.20 ms  3.00 ms  appendonly no       usable\n"
        "\n"
        "redis://10.0.0.22:6379: failure: no answer in time. It has no vote. Check that it runs, its "
        "address, the "
        "network and firewalls.\n"
        "redis://10.0.0.3:6379: warning: maxmemory-policy is volatile-lru. When its memory is full, it "
        "evicts keys, "
        "and another client can acquire their locks. Set maxmemory-policy noeviction.\n" +
            forgets("redis://10.0.0.3:6379") +
            "\n"
            "usable: 2 of 3 masters can be used (quorum 2): none of them may fail\n");
}

TEST_CASE("diagnosis: a finding of all masters is written once, with the range of its times", "[doctor]")
{
    std::vector<master_facts> masters{facts_of('b', 1), facts_of('n', 2), facts_of('n', 3)};
    masters[0].probed->at(probe_step::extend).took = 40ms;
    masters[1].probed->at(probe_step::extend).took = 30ms;
    masters[2].probed->at(probe_step::extend).took = 45ms;
    const auto findings_and_verdict = [](const cli::diagnosis& all)
    {
        const std::string text = cli::text_of(all);
        return text.substr(text.find("\n\n") + 2);
    };
    CHECK(
        findings_and_verdict(cli::diagnose(masters)) ==
        "all 3 masters: note: its slowest answer to a command of the probe, in the best of 1 tries, took "
        "30.00 ms to "
        "45.00 ms. With the library's default node timeout of 50 ms some of its votes arrive too late. Its "
        "round "
        "trips are faster, so it waits for its disk (appendfsync always waits for each write): use a faster "
        "disk, or "
        "raise the node timeout (ttl / 20 in redlock run: raise --ttl).\n" +
            forgets("all 3 masters") +
            "redis://10.0.0.1:6379: warning: maxmemory-policy is volatile-lru. When its memory is full, it "
            "evicts "
            "keys, and another client can acquire their locks. Set maxmemory-policy noeviction.\n"
            "\n"
            "usable: 3 of 3 masters can be used (quorum 2): 1 of them may fail\n");
    // One that differs ends the common line.
    masters[1].examined.appendonly = "yes";
    const std::string differs = findings_and_verdict(cli::diagnose(masters));
    CHECK(differs.find(forgets("all 3 masters")) == std::string::npos);
    CHECK(differs.find(forgets("redis://10.0.0.1:6379")) != std::string::npos);
    CHECK(differs.find(forgets("redis://10.0.0.2:6379")) == std::string::npos);
    CHECK(differs.find(forgets("redis://10.0.0.3:6379")) != std::string::npos);
    // One master alone is named.
    CHECK(
        findings_and_verdict(of("n")) ==
        forgets("redis://10.0.0.1:6379") +
            "\ngood: 1 of 1 masters can be used (quorum 1): none of them may fail\n");
    CHECK(
        findings_and_verdict(of("g")) ==
        "good: 1 of 1 masters can be used (quorum 1): none of them may fail\n");
    CHECK(findings_and_verdict(of("guu")).ends_with(
        "\nunusable: 1 of 3 masters can be used (quorum 2): no lock can be acquired\n"));
}

TEST_CASE("diagnosis: findings that differ in one part aren't written as one", "[doctor]")
{
    const cli::finding one{cli::severity::note, "kind", "seen", "meaning", "advice"};
    std::vector<cli::finding> others(5, one);
    others[0].level = cli::severity::warning;
    others[1].kind = "other";
    others[2].what = "other";
    others[3].meaning = "other";
    others[4].advice = "other";
    const auto is_common = [&one](const cli::finding& other)
    {
        cli::diagnosis all;
        all.masters.resize(2);
        all.masters[0].findings = {one};
        all.masters[1].findings = {other};
        return cli::text_of(all).find("all 2 masters") != std::string::npos;
    };
    CHECK(is_common(one));
    for (const cli::finding& each : others)
    {
        CHECK_FALSE(is_common(each));
    }
}

} // namespace redlock::test
