// SPDX-License-Identifier: BSL-1.0
// Golden values: what two builds of the library must agree on, and what scripts and dashboards of users depend on. They
// are in golden.txt. After an intended change: REDLOCK_RECORD_GOLDEN=1 upper_unit_tests "golden*"
#include "cli/common/exit_code.hpp"
#include "core/queue_master.hpp"
#include "net/arming_scripts.hpp"
#include "net/claim.hpp"
#include "net/command.hpp"
#include "net/guard_scripts.hpp"
#include "net/queue_scripts.hpp"

#include <redlock/config.hpp>
#include <redlock/error.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr int first_value = 1; // Of both enumerations. The last ones are found by their unknown names.

std::string text_of_file(const std::string& name)
{
    std::ifstream in{name};
    REQUIRE(in);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string condition_names(const error_code& error)
{
    std::string met;
    for (const condition each :
         {condition::contended, condition::unavailable, condition::lost, condition::misuse,
          condition::retryable})
    {
        if (error == each)
        {
            met += (met.empty() ? "" : ",") + std::string{to_string(each)};
        }
    }
    return met.empty() ? "-" : met;
}

template <class Enumeration>
std::vector<error_code> all_of()
{
    std::vector<error_code> all;
    for (int value = first_value; to_string(static_cast<Enumeration>(value)) != "unknown"; ++value)
    {
        all.push_back(make_error_code(static_cast<Enumeration>(value)));
    }
    return all;
}

std::vector<error_code> all_errors()
{
    std::vector<error_code> all = all_of<errc>();
    const std::vector<error_code> of_masters = all_of<master_errc>();
    all.insert(all.end(), of_masters.begin(), of_masters.end());
    return all;
}

std::string golden_values()
{
    std::string text = "# category, value, name, conditions, generic error, exit code, message\n";
    for (const error_code& each : all_errors())
    {
        const auto generic = each.default_error_condition();
        text += fmt::format(
            "{} {} {} {} {} {} {}\n", each.category().name(), each.value(), error_name(each),
            condition_names(each), generic.category() == each.category() ? "-" : generic.message(),
            cli::number_of(cli::exit_code_of(each)), each.message());
    }
    text += "# digests of the scripts\n";
    for (const auto& [name, script] :
         {std::pair{"extend", &net::extend_script}, std::pair{"release", &net::release_script},
          std::pair{"ask", &net::ask_script}, std::pair{"release_to_queue", &net::release_to_queue_script},
          std::pair{"guarded_acquire", &net::guarded_acquire_script},
          std::pair{"guarded_ask", &net::guarded_ask_script},
          std::pair{"guarded_extend", &net::guarded_extend_script}, std::pair{"raise", &net::raise_script},
          std::pair{"quarantine", &net::quarantine_script},
          std::pair{"largest_counter", &net::largest_counter_script}, std::pair{"arm", &net::arm_script}})
    {
        text += fmt::format("{} {}\n", name, script->sha1);
    }
    text += "# hashes\n";
    for (const std::string_view each : {"", "lock:invoice:42", "redis://10.0.0.1:6379"})
    {
        text += fmt::format("'{}' {:016x}\n", each, core::stable_hash(each));
    }
    text += fmt::format("weight {:016x}\n", core::queue_weight(0x0123456789abcdef, 0xfedcba9876543210));
    text += fmt::format("# key\n{}\n", config{}.key_prefix + "invoice:42");
    return text;
}

} // namespace

TEST_CASE("golden values haven't changed")
{
    const std::string now = golden_values();
    if (std::getenv("REDLOCK_RECORD_GOLDEN") != nullptr) // NOLINT: before any thread is started.
    {
        std::ofstream{REDLOCK_GOLDEN} << now;
    }
    std::istringstream expected{text_of_file(REDLOCK_GOLDEN)};
    std::istringstream measured{now};
    std::string line;
    for (std::string recorded; std::getline(expected, recorded);)
    {
        REQUIRE(std::getline(measured, line));
        CHECK(line == recorded);
    }
    CHECK_FALSE(std::getline(measured, line));
}

TEST_CASE("each enumerator of the errors has a name, and a row on the page of errors")
{
    const std::string header = text_of_file(REDLOCK_SOURCE "/include/redlock/error.hpp");
    const std::string page = text_of_file(REDLOCK_SOURCE "/docs/errors.md");
    const std::regex enumerator{R"(\n    ([a-z_]+)(?: = 1)?,?\s*///<)"};
    std::vector<std::string> declared;
    for (std::sregex_iterator each{header.begin(), header.end(), enumerator}, end; each != end; ++each)
    {
        declared.push_back((*each)[1]);
    }
    std::vector<std::string> named;
    for (const error_code& each : all_errors())
    {
        named.emplace_back(error_name(each));
        INFO(named.back());
        CHECK(page.find("\n| `" + named.back() + "` |") != std::string::npos);
    }
    for (const condition each :
         {condition::contended, condition::unavailable, condition::lost, condition::misuse,
          condition::retryable})
    {
        named.emplace_back(to_string(each));
    }
    CHECK(named == declared);
}

} // namespace redlock::test
