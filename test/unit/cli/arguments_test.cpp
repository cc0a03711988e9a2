// SPDX-License-Identifier: BSL-1.0
// Each option changes its own argument and no other, in each subcommand, and in any order.
#include "cli/common/arguments.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/manager_config.hpp"

#include "unit/cli/captured_errors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

using strings = std::vector<std::string>;
/// Names of arguments, and their values as text.
using values = std::map<std::string, std::string>;

/// Sets REDLOCK_MASTERS while it exists.
class masters_in_environment
{
  public:
    // NOLINTBEGIN: no other thread reads the environment.
    explicit masters_in_environment(const char* urls)
    {
        urls == nullptr ? ::unsetenv(cli::masters_variable) : ::setenv(cli::masters_variable, urls, 1);
    }
    ~masters_in_environment() { ::unsetenv(cli::masters_variable); }
    // NOLINTEND
    masters_in_environment(const masters_in_environment&) = delete;
    masters_in_environment& operator=(const masters_in_environment&) = delete;
};

std::string text_of(const time_limit& limit)
{
    return limit.unlimited() ? "unlimited" : fmt::format("{} ms", limit.value().count());
}

void add(values& to, const cli::master_arguments& servers)
{
    to["masters"] = fmt::format("{}", fmt::join(servers.masters, " "));
    to["ca_file"] = servers.tls.ca_file;
    to["certificate_file"] = servers.tls.certificate_file;
    to["private_key_file"] = servers.tls.private_key_file;
    to["connect_timeout"] =
        servers.connect_timeout ? fmt::format("{} ms", servers.connect_timeout->count()) : std::string{};
    to["other tls"] = servers.tls.verification == tls_verification::peer_and_host_name ? servers.tls.ciphers
                                                                                       : "not verified";
}

void add(values& to, const cli::resource_arguments& common)
{
    add(to, common.servers);
    to["prefix"] = common.prefix;
    to["resource"] = common.resource;
}

struct values_of
{
    values operator()(const cli::answered& done) const
    {
        return {{"exit code", std::to_string(done.exit_code)}};
    }
    values operator()(const cli::run_arguments& all) const
    {
        values found{
            {"", "run"},
            {"ttl", fmt::format("{} ms", all.ttl.count())},
            {"max_hold", text_of(all.max_hold)},
            {"wait", text_of(all.wait)},
            {"try_once", fmt::format("{}", all.try_once)},
            {"grace", fmt::format("{} ms", all.grace.count())},
            {"verbose", fmt::format("{}", all.verbose)},
            {"inherit_masters", fmt::format("{}", all.inherit_masters)},
            {"command", fmt::format("{}", fmt::join(all.command, " "))}};
        add(found, all.common);
        return found;
    }
    values operator()(const cli::status_arguments& all) const
    {
        values found{{"", "status"}, {"json", fmt::format("{}", all.json)}};
        add(found, all.common);
        return found;
    }
    values operator()(const cli::doctor_arguments& all) const
    {
        values found{
            {"", "doctor"},
            {"prefix", all.prefix},
            {"probe", fmt::format("{}", all.probe)},
            {"json", fmt::format("{}", all.json)}};
        add(found, all.servers);
        return found;
    }
    values operator()(const cli::provision_arguments& all) const
    {
        values found{
            {"", "provision"},
            {"prefix", all.prefix},
            {"action", fmt::format("{}", static_cast<int>(all.options.action))},
            {"group", all.group},
            {"max_ttl", fmt::format("{} ms", all.options.max_ttl.count())},
            {"policy", all.options.policy == arming_policy::clocks ? "clocks" : "by_hand"},
            {"fresh", fmt::format("{}", all.options.fresh)},
            {"leaving", fmt::format("{}", all.options.leaving)},
            {"stopped", fmt::format("{}", all.options.stopped)},
            {"takeover", fmt::format("{}", all.options.takeover)},
            {"json", fmt::format("{}", all.json)}};
        add(found, all.servers);
        return found;
    }
};

values parsed(const strings& words)
{
    std::vector<const char*> arguments{"redlock"};
    for (const std::string& each : words)
    {
        arguments.push_back(each.c_str());
    }
    const captured_errors errors;
    return std::visit(values_of{}, cli::read_arguments(static_cast<int>(arguments.size()), arguments.data()));
}

/// Returns the values with these changes.
values with(values all, const values& changed)
{
    for (const auto& [name, value] : changed)
    {
        all[name] = value;
    }
    return all;
}

struct option
{
    strings words;
    values changes;
};

const std::vector<option> of_servers{
    {{"--master", "redis://a"}, {{"masters", "redis://a"}}},
    {{"--master", "redis://a", "--master=redis://b"}, {{"masters", "redis://a redis://b"}}},
    {{"--ca-file", "/ca.pem"}, {{"ca_file", "/ca.pem"}}},
    {{"--certificate-file", "/c.pem", "--private-key-file", "/k.pem"},
     {{"certificate_file", "/c.pem"}, {"private_key_file", "/k.pem"}}},
    {{"--connect-timeout", "3s"}, {{"connect_timeout", "3000 ms"}}},
    {{"--connect-timeout=1h"}, {{"connect_timeout", "3600000 ms"}}}};

const std::vector<option> of_run{
    {{"--ttl", "20s"}, {{"ttl", "20000 ms"}, {"grace", "5000 ms"}}},
    {{"--ttl", "4s"}, {{"ttl", "4000 ms"}, {"grace", "1000 ms"}}},
    {{"--max-hold", "2d"}, {{"max_hold", "172800000 ms"}}},
    {{"--max-hold", "unlimited"}, {{"max_hold", "unlimited"}}},
    {{"--wait", "5m"}, {{"wait", "300000 ms"}}},
    {{"--wait", "0s"}, {{"wait", "0 ms"}}},
    {{"--wait", "unlimited"}, {{"wait", "unlimited"}}},
    {{"--try"}, {{"try_once", "true"}}},
    {{"--grace", "7ms"}, {{"grace", "7 ms"}}},
    {{"--grace", "0s"}, {{"grace", "0 ms"}}},
    {{"--no-inherit-masters"}, {{"inherit_masters", "false"}}},
    {{"-v"}, {{"verbose", "true"}}},
    {{"--verbose"}, {{"verbose", "true"}}},
    {{"--prefix", "x:"}, {{"prefix", "x:"}}},
    {{"--prefix="}, {{"prefix", ""}}}};

const std::vector<option> of_status{
    {{"--json"}, {{"json", "true"}}},
    {{"--prefix", "x:"}, {{"prefix", "x:"}}},
    {{"--prefix="}, {{"prefix", ""}}}};

const std::vector<option> of_doctor{
    {{"--json"}, {{"json", "true"}}},
    {{"--no-probe"}, {{"probe", "false"}}},
    {{"--prefix", "x:"}, {{"prefix", "x:"}}}};

const std::vector<option> of_provision{
    {{"--json"}, {{"json", "true"}}},
    {{"--fresh"}, {{"fresh", "true"}}},
    {{"--policy", "operator"}, {{"policy", "by_hand"}}},
    {{"--policy=clocks"}, {{"policy", "clocks"}}},
    {{"--prefix", "x:"}, {{"prefix", "x:"}}}};

strings joined(strings words, const strings& more)
{
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// Checks each option alone, and each pair of different options in both orders.
void check_options(
    std::vector<option> all, const strings& before, const strings& after, const values& defaults)
{
    all.insert(all.end(), of_servers.begin(), of_servers.end());
    const auto parse = [&](const strings& words) { return parsed(joined(joined(before, words), after)); };
    for (const option& first : all)
    {
        CAPTURE(first.words);
        CHECK(parse(first.words) == with(defaults, first.changes));
        for (const option& second : all)
        {
            const auto is_in_first = [&first](const auto& change)
            { return first.changes.contains(change.first); };
            const bool excluded = (first.words.front() == "--try" && second.changes.contains("wait")) ||
                                  (second.words.front() == "--try" && first.changes.contains("wait"));
            if (excluded || std::any_of(second.changes.begin(), second.changes.end(), is_in_first))
            {
                continue;
            }
            CAPTURE(second.words);
            CHECK(
                parse(joined(first.words, second.words)) ==
                with(with(defaults, first.changes), second.changes));
        }
    }
}

} // namespace

TEST_CASE("arguments: each option of run changes its own value and no other", "[usage]")
{
    const masters_in_environment given{" redis://m1 ,redis://m2"};
    const strings before{"run", "--max-hold", "1h"};
    const strings after{"job", "--", "cp", "-v", "--", "x"};
    const values defaults = parsed(joined(before, after));
    CHECK(
        defaults == values{
                        {"", "run"},
                        {"masters", "redis://m1 redis://m2"},
                        {"ca_file", ""},
                        {"certificate_file", ""},
                        {"private_key_file", ""},
                        {"connect_timeout", ""},
                        {"other tls", ""},
                        {"prefix", "lock:"},
                        {"resource", "job"},
                        {"ttl", "10000 ms"},
                        {"max_hold", "3600000 ms"},
                        {"wait", "10000 ms"},
                        {"try_once", "false"},
                        {"grace", "2500 ms"},
                        {"verbose", "false"},
                        {"inherit_masters", "true"},
                        {"command", "cp -v -- x"}});
    check_options(of_run, before, after, defaults);
}

TEST_CASE("arguments: each option of status changes its own value and no other", "[usage]")
{
    const masters_in_environment given{"redis://m1"};
    const values defaults = parsed({"status", "job"});
    CHECK(
        defaults == values{
                        {"", "status"},
                        {"masters", "redis://m1"},
                        {"ca_file", ""},
                        {"certificate_file", ""},
                        {"private_key_file", ""},
                        {"connect_timeout", ""},
                        {"other tls", ""},
                        {"prefix", "lock:"},
                        {"resource", "job"},
                        {"json", "false"}});
    check_options(of_status, {"status"}, {"job"}, defaults);
    check_options(of_status, {"status", "job"}, {}, defaults);
}

TEST_CASE("arguments: each option of doctor changes its own value and no other", "[usage]")
{
    const masters_in_environment given{"redis://m1"};
    const values defaults = parsed({"doctor"});
    CHECK(
        defaults == values{
                        {"", "doctor"},
                        {"masters", "redis://m1"},
                        {"ca_file", ""},
                        {"certificate_file", ""},
                        {"private_key_file", ""},
                        {"connect_timeout", ""},
                        {"other tls", ""},
                        {"prefix", "lock:"},
                        {"probe", "true"},
                        {"json", "false"}});
    check_options(of_doctor, {"doctor"}, {}, defaults);
}

TEST_CASE("arguments: each option of provision changes its own value and no other", "[usage]")
{
    const masters_in_environment given{"redis://m1"};
    const values defaults = parsed({"provision", "--max-ttl", "1m"});
    CHECK(
        defaults == values{
                        {"", "provision"},
                        {"masters", "redis://m1"},
                        {"ca_file", ""},
                        {"certificate_file", ""},
                        {"private_key_file", ""},
                        {"connect_timeout", ""},
                        {"other tls", ""},
                        {"prefix", "lock:"},
                        {"action", "0"},
                        {"group", ""},
                        {"max_ttl", "60000 ms"},
                        {"policy", "clocks"},
                        {"fresh", "false"},
                        {"leaving", "0"},
                        {"stopped", "0"},
                        {"takeover", "false"},
                        {"json", "false"}});
    check_options(of_provision, {"provision", "--max-ttl", "1m"}, {}, defaults);
    CHECK(parsed({"provision"}) == values{{"exit code", "64"}});
    const values without = with(defaults, {{"max_ttl", "0 ms"}});
    CHECK(parsed({"provision", "--arm"}) == with(without, {{"action", "1"}}));
    const values again = with(without, {{"action", "2"}, {"group", "0123456789abcdef"}});
    CHECK(parsed({"provision", "--again", "0123456789abcdef"}) == again);
    CHECK(
        parsed({"provision", "--again=0123456789abcdef", "--max-ttl", "2s", "--policy", "operator"}) ==
        with(again, {{"max_ttl", "2000 ms"}, {"policy", "by_hand"}}));
    // Never the masters of the environment.
    CHECK(
        parsed({"provision", "--retire", "redis://a", "--retire", "redis://b"}) ==
        with(without, {{"action", "3"}, {"masters", "redis://a redis://b"}}));
    const strings change{"provision", "--change", "--max-ttl", "1m"};
    CHECK(parsed(change) == with(defaults, {{"action", "4"}}));
    CHECK(parsed({"provision", "--change"}) == values{{"exit code", "64"}});
    CHECK(
        parsed({"provision", "--max-ttl", "1m", "--takeover", "--from", "redis://a"}) ==
        with(defaults, {{"takeover", "true"}, {"masters", "redis://m1 redis://a"}, {"leaving", "1"}}));
    // One that stays may be given as an old master, too.
    CHECK(
        parsed(joined(
            change, {"--stopped", "redis://c", "--from", "redis://m1", "--from", "redis://b", "--policy",
                     "operator"})) ==
        with(
            defaults, {{"action", "4"},
                       {"policy", "by_hand"},
                       {"masters", "redis://m1 redis://b redis://c"},
                       {"leaving", "2"},
                       {"stopped", "1"}}));
    for (const strings& wrong :
         {strings{"--fresh"}, strings{"--arm"}, strings{"--again", "0123456789abcdef"},
          strings{"--retire", "redis://a"}})
    {
        CHECK(parsed(joined(change, wrong)) == values{{"exit code", "64"}});
    }
}

TEST_CASE("arguments: the last of repeated options counts", "[usage]")
{
    const masters_in_environment given{"redis://m1"};
    const strings after{"job", "--", "true"};
    for (const option& each : std::vector<option>{
             {{"--ttl", "20s", "--ttl", "8s"}, {{"ttl", "8000 ms"}}},
             {{"--max-hold", "1d", "--max-hold", "unlimited"}, {{"max_hold", "unlimited"}}},
             {{"--wait", "unlimited", "--wait", "1s"}, {{"wait", "1000 ms"}}},
             {{"--grace", "1s", "--grace", "2s"}, {{"grace", "2000 ms"}}},
             {{"--prefix", "x:", "--prefix", "y:"}, {{"prefix", "y:"}}},
             {{"--ca-file", "/1", "--ca-file", "/2"}, {{"ca_file", "/2"}}},
             {{"--connect-timeout", "1s", "--connect-timeout", "2s"}, {{"connect_timeout", "2000 ms"}}},
             {{"--try", "--try"}, {{"try_once", "true"}}},
             {{"-v", "-v"}, {{"verbose", "true"}}}})
    {
        CAPTURE(each.words);
        const values found = parsed(joined(joined({"run", "--max-hold", "1h"}, each.words), after));
        CHECK(found == with(found, each.changes));
    }
}

TEST_CASE("arguments: masters are those of the options, or else those of the environment", "[usage]")
{
    const auto masters = [](const char* variable, const strings& options)
    {
        const masters_in_environment given{variable};
        try
        {
            const values found = parsed(joined({"doctor"}, options));
            return found.contains("masters") ? found.at("masters") : "exit " + found.at("exit code");
        }
        catch (const system_error& error)
        {
            return fmt::format("exit {}", cli::number_of(cli::exit_code_of(error.code())));
        }
    };
    CHECK(masters("redis://m1", {"--master", "redis://a"}) == "redis://a");
    CHECK(masters("\t redis://m1 , redis://m2\r\n", {}) == "redis://m1 redis://m2");
    // A comma in an option is part of its URL.
    CHECK(masters(nullptr, {"--master", "redis://a,redis://b"}) == "redis://a,redis://b");
    CHECK(masters(nullptr, {}) == "exit 64");
    CHECK(masters("", {}) == "exit 64");
    CHECK(masters("\n", {}) == "exit 64");
    for (const char* gap : {",redis://m1", "redis://m1,", "redis://m1, ,redis://m2", ","})
    {
        CAPTURE(gap);
        CHECK(masters(gap, {}) == "exit 78");
    }
}

TEST_CASE("arguments: a manager gets the masters in their order, the prefix and the files for TLS", "[usage]")
{
    cli::resource_arguments given;
    given.servers.masters = {"rediss://b", "redis://a:7/2"};
    given.servers.tls = {.ca_file = "/ca", .certificate_file = "/c", .private_key_file = "/k"};
    given.prefix = "x:";
    const config made = cli::manager_config(given);
    CHECK(made.key_prefix == "x:");
    CHECK(made.tls == given.servers.tls);
    REQUIRE(made.masters.size() == 2);
    CHECK(made.masters[0].name() == "rediss://b:6379");
    CHECK(made.masters[1].name() == "redis://a:7/2");
    // One master over TLS is enough, at any place.
    std::swap(given.servers.masters[0], given.servers.masters[1]);
    CHECK(cli::manager_config(given).tls == given.servers.tls);
    given.servers.masters = {"redis://a"};
    for (const tls_options& files :
         {tls_options{.ca_file = "/ca"}, tls_options{.certificate_file = "/c", .private_key_file = "/k"}})
    {
        given.servers.tls = files;
        CHECK_THROWS_AS(cli::manager_config(given), system_error);
    }
    given.servers.tls = {};
    CHECK(cli::manager_config(given).masters.size() == 1);
}

TEST_CASE("arguments: no message repeats a value that may be a URL with a password", "[usage]")
{
    captured_errors errors;
    const std::string url = "redis://user:SECRET@host";
    const auto said = [&errors](const strings& words)
    {
        std::vector<const char*> all{"redlock"};
        for (const std::string& each : words)
        {
            all.push_back(each.c_str());
        }
        const cli::request asked = cli::read_arguments(static_cast<int>(all.size()), all.data());
        CHECK(std::get<cli::answered>(asked).exit_code == 64);
        return errors.take();
    };
    const strings provision{"provision", "--max-ttl", "1s", "--master", "redis://a"};
    const strings run{"run", "--max-hold", "1h", "--master", "redis://a", "job"};
    const auto [option, first] = GENERATE_COPY(table<std::string, strings>({
        {"--max-ttl", provision},
        {"--policy", provision},
        {"--again", provision},
        {"--ca-file", provision},
        {"--fresh", provision},
        {"--no-such", provision},
        {"--" + url, provision},
        {"-v" + url, provision},
        {"--max-hold", run},
        {"--wait", run},
        {"--ttl", run},
        {"--grace", run},
        {"--certificate-file", run},
        {"--private-key-file", run},
        {"--connect-timeout", run},
    }));
    CAPTURE(option);
    strings words = first;
    words.push_back(option + "=" + url);
    if (words.front() == "run")
    {
        words.insert(words.end(), {"--", "true"});
    }
    const std::string message = said(words);
    CHECK(message.starts_with("redlock: "));
    CHECK(message.find("SECRET") == std::string::npos);
}

TEST_CASE("arguments: an old master that is given twice is named without its password", "[usage]")
{
    captured_errors errors;
    const char* const first = GENERATE("--from", "--stopped");
    const char* const second = GENERATE("--from", "--stopped");
    const char* const url = "redis://user:SECRET@b";
    const std::array words{"redlock",   "provision", "--change", "--max-ttl", "1m", "--master",
                           "redis://a", first,       url,        second,      url};
    const cli::request asked = cli::read_arguments(static_cast<int>(words.size()), words.data());
    REQUIRE(std::holds_alternative<cli::answered>(asked));
    CHECK(std::get<cli::answered>(asked).exit_code == 64);
    CHECK(
        errors.take() == "redlock: --from, --stopped: redis://b:6379 is given twice: give each old master "
                         "once, with one of these options\n");
}

TEST_CASE("arguments: a refusal has the message of the error without its general advice", "[usage]")
{
    captured_errors errors;
    const auto said = [&errors](const system_error& error)
    {
        const int code = cli::refuse(error);
        return fmt::format("{} {}", code, errors.take());
    };
    CHECK(
        said({errc::invalid_master, "what is wrong: how it is right"}) ==
        "78 redlock: what is wrong: how it is right\n");
    CHECK(said({errc::invalid_config, "a bad option"}) == "78 redlock: a bad option\n");
    CHECK(said({errc::invalid_resource, "a bad name"}) == "64 redlock: a bad name\n");
    CHECK(
        said({{EMFILE, boost::system::system_category()}, "signalfd"}) ==
        "71 redlock: the system refuses: signalfd: Too many open files\n");
}

} // namespace redlock::test
