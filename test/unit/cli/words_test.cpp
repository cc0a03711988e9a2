// SPDX-License-Identifier: BSL-1.0
// The smallest parts of the command: durations, times, passwords on the command line, messages and JSON strings.
#include "cli/common/duration.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/json.hpp"
#include "cli/common/message.hpp"
#include "cli/common/times.hpp"
#include "cli/common/words.hpp"
#include "cli/run/signals.hpp"

#include "unit/cli/captured_errors.hpp"

#include <redlock/error.hpp>

#include <boost/asio/error.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cerrno>
#include <csignal>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

using namespace std::chrono_literals;
using namespace std::string_literals;
using std::chrono::milliseconds;

namespace
{

/// Returns the words after passwords in them were overwritten.
std::vector<std::string> hidden(std::vector<std::string> words)
{
    std::vector<char*> pointers;
    for (std::string& each : words)
    {
        pointers.push_back(each.data());
    }
    cli::hide_passwords(static_cast<int>(pointers.size()), pointers.data());
    return words;
}

std::string string_of(std::string_view bytes)
{
    return std::string{cli::json_string(bytes).as_string()};
}

} // namespace

TEST_CASE("duration: each unit has its length, and text that isn't a duration is refused", "[usage]")
{
    for (const auto& [text, value] : std::vector<std::pair<const char*, milliseconds>>{
             {"0ms", 0ms},
             {"1ms", 1ms},
             {"1s", 1s},
             {"1m", 1min},
             {"1h", 1h},
             {"1d", 24h},
             {"36500d", 876'000h},
             {"007s", 7s},
             {"3153600000000ms", 876'000h},
             {"3153600000s", 876'000h}})
    {
        CAPTURE(text);
        CHECK(cli::read_duration(text) == value);
        CHECK(cli::read_limit(text).value() == value);
    }
    for (const char* text :
         {"", "1", "s", "-1s", "-0s", "+1s", " 1s", "1 s", "1s ", "1.5s", "1S", "1us", "1w", "1ss", "36501d",
          "3153600000001ms", "9223372036854775808ms", "unlimited "})
    {
        CAPTURE(text);
        CHECK_THROWS_AS(cli::read_duration(text), std::invalid_argument);
        CHECK_THROWS_AS(cli::read_limit(text), std::invalid_argument);
    }
    CHECK_THROWS_AS(cli::read_duration("unlimited"), std::invalid_argument);
    CHECK(cli::read_limit("unlimited").unlimited());
}

TEST_CASE("duration: is written in the largest unit that divides it", "[usage]")
{
    for (const auto& [value, text] : std::vector<std::pair<milliseconds, const char*>>{
             {0ms, "0 ms"},
             {999ms, "999 ms"},
             {1s, "1 s"},
             {1001ms, "1.001 s"},
             {5030ms, "5.03 s"},
             {59s, "59 s"},
             {1min, "1 m"},
             {90s, "90 s"},
             {2h, "2 h"},
             {25h, "25 h"},
             {48h, "2 d"},
             {60'500ms, "60.5 s"}})
    {
        CHECK(cli::in_words(value) == text);
    }
}

TEST_CASE("times: follow from the ttl", "[run]")
{
    CHECK(cli::node_timeout(19ms) == 1ms);
    CHECK(cli::node_timeout(2s) == 100ms);
    CHECK(cli::node_timeout(10s) == 500ms);
    CHECK(cli::node_timeout(1h) == 500ms);
    CHECK(cli::extend_every(9s) == 3s);
    CHECK(cli::default_grace(8s) == 2s);
    CHECK(cli::default_grace(20s) == 5s);
    CHECK(cli::default_grace(1h) == 5s);
    CHECK(cli::stop_margin(3s) == 3200ms);
    CHECK(cli::max_grace(10s) == 5030ms);
    CHECK(cli::max_grace(1h) == 1h - 20min - 2min - 1s - 200ms - 36s - 2ms - 1ms);
    CHECK(cli::shortest_ttl() == 386ms);
    CHECK(cli::max_grace(386ms) == 0ms);
    CHECK_FALSE(cli::max_grace(385ms));
}

TEST_CASE("times: SIGKILL follows after the grace, and before the end of the validity", "[run][loss]")
{
    const clock::time_point start{1h};
    CHECK(cli::kill_at(start, 2s, start + 5s) == start + 2s);
    CHECK(cli::kill_at(start, 2s, start + 2100ms) == start + 2s);
    CHECK(cli::kill_at(start, 2s, start + 2099ms) == start + 1999ms);
    CHECK(cli::kill_at(start, 2s, start) == start - 100ms);
    CHECK(cli::kill_at(start, 2s, {}) == clock::time_point{} - 100ms);
}

TEST_CASE(
    "words: every password on the command line is overwritten, and nothing else", "[usage][scenario-52]")
{
    for (const auto& [given, shown] : std::vector<std::pair<std::string, std::string>>{
             {"redis://:secret@h", "redis://:******@h"},
             {"redis://me:secret@h:1/2", "redis://me:******@h:1/2"},
             {"--master=rediss://me:s:e@r@h", "--master=rediss://me:*****@h"},
             {"redis://me@h:6379", "redis://me@h:6379"},
             {"redis://h:6379/a@b", "redis://h:6379/a@b"},
             {"redis://h:6379", "redis://h:6379"},
             {"unix:///run/a:b@c", "unix:///run/a:b@c"},
             {"me:secret@h", "me:secret@h"}})
    {
        CHECK(
            hidden({given, "status", given, "job", given, "--", given}) ==
            std::vector<std::string>{given, "status", shown, "job", shown, "--", given});
    }
}

TEST_CASE("words: the command of run follows the first --", "[usage]")
{
    using strings = std::vector<std::string>;
    strings words{"run", "job", "--", "cp", "--", "x"};
    CHECK(cli::take_command(words) == strings{"cp", "--", "x"});
    CHECK(words == strings{"run", "job"});
    words = {"status", "--", "-job"};
    CHECK_FALSE(cli::take_command(words));
    CHECK(words.size() == 3);
    words = {"run", "job"};
    CHECK_FALSE(cli::take_command(words));
    words = {"-job", "--", "cp", "--", "x"};
    CHECK(cli::take_resource(words) == "-job");
    CHECK(words == strings{"cp", "--", "x"});
    words = {"cp", "x", "--"};
    CHECK(cli::take_resource(words).empty());
    CHECK(words.size() == 3);
}

TEST_CASE("message: each error of a master that names an option of the library has other words", "[run]")
{
    const std::string unchanged[] = {"no connection to it was ready", "it closed the connection"};
    CHECK(cli::in_plain_words(master_errc::not_connected) == unchanged[0]);
    CHECK(cli::in_plain_words(master_errc::connection_lost) == unchanged[1]);
    for (int value = 1; to_string(static_cast<master_errc>(value)) != "unknown"; ++value)
    {
        const std::string text = cli::in_plain_words(static_cast<master_errc>(value));
        CAPTURE(text);
        CHECK(text.find('_') == std::string::npos);
        CHECK(text.find(": ") == std::string::npos);
    }
    CHECK(cli::in_plain_words(master_errc::timed_out) == "no answer in time");
    CHECK(cli::in_plain_words(master_errc::unresponsive) == "it stopped answering and was disconnected");
    CHECK(cli::in_plain_words(master_errc::connect_timed_out) == "no connection to it in time");
    CHECK(cli::in_plain_words(master_errc::write_queue_full) == "it doesn't read what is sent to it");
    CHECK(
        cli::in_plain_words(master_errc::too_many_outstanding_keys) ==
        "too many releases to it are unconfirmed");
    CHECK(
        cli::in_plain_words(master_errc::same_server) ==
        "it is the same server as another master, so it has no vote");
    CHECK(cli::in_plain_words(errc::hold_limit_reached) == "--max-hold was reached");
    CHECK(
        cli::in_plain_words(errc::validity_exhausted) ==
        "a quorum granted it too late, with too little of the --ttl left");
    CHECK(cli::in_plain_words(errc::no_quorum) == "fewer than a quorum of the masters answered");
    // The same number in another category.
    CHECK(
        cli::in_plain_words({static_cast<int>(master_errc::timed_out), boost::system::system_category()}) ==
        "No such file or directory");
}

TEST_CASE("message: the system refuses descriptors and memory, and nothing else", "[run]")
{
    const std::set<int> refused{EMFILE, ENFILE, ENOMEM, ENOBUFS};
    for (int number = 0; number < 140; ++number)
    {
        CAPTURE(number);
        CHECK(
            cli::is_refused_by_system({number, boost::system::system_category()}) ==
            refused.contains(number));
    }
    CHECK_FALSE(cli::is_refused_by_system(static_cast<master_errc>(ENOMEM)));
}

TEST_CASE("message: a name is quoted, escaped and shortened", "[run][scenario-51]")
{
    CHECK(cli::in_quotes("job") == "'job'");
    CHECK(cli::in_quotes("a\nb") == "'a\\nb'");
    CHECK(cli::in_quotes(std::string(1024, 'x')).size() < 100);
    captured_errors errors;
    cli::say("first");
    cli::say("");
    CHECK(errors.take() == "redlock: first\nredlock: \n");
}

TEST_CASE(
    "json: a string is valid UTF-8, and an empty one is null where that means none", "[status][scenario-51]")
{
    CHECK(string_of("a\0\xc3\xa9"s) == "a\0\xc3\xa9"s);
    CHECK(string_of("\xf0\x9f\x94\x92!") == "\xf0\x9f\x94\x92!");
    // Invalid, truncated, overlong, a surrogate.
    CHECK(
        string_of("\xff|\xc3|\xc0\xaf|\xed\xa0\x80") ==
        "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(string_of("\xc3") == "\xef\xbf\xbd");
    CHECK(cli::json_string("").is_string());
    CHECK(cli::json_string_or_null("").is_null());
    CHECK(cli::json_string_or_null("x").is_string());
}

TEST_CASE("signals: each signal ends redlock, is forwarded, or controls jobs", "[signals]")
{
    const std::set<int> of_jobs{SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};
    const std::set<int> stops{SIGTSTP, SIGTTIN, SIGTTOU};
    const std::set<int> both{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (int number = 1; number <= SIGRTMAX; ++number)
    {
        CAPTURE(number);
        CHECK(cli::is_passed_on(number) != of_jobs.contains(number));
        CHECK(cli::requests_end(number) == (cli::is_passed_on(number) && number != SIGWINCH));
        CHECK(cli::is_stop_of_terminal(number) == stops.contains(number));
        CHECK(cli::ends_both(number) == both.contains(number));
    }
}

TEST_CASE("exit codes: an error that isn't the library's is one of the system", "[run]")
{
    CHECK(cli::exit_code_of(error_code{}) == cli::exit_code::success);
    CHECK(cli::exit_code_of(boost::asio::error::connection_refused) == cli::exit_code::system_error);
    CHECK(cli::exit_code_of(master_errc::not_connected) == cli::exit_code::system_error);
}

} // namespace redlock::test
