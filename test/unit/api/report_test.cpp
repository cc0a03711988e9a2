// SPDX-License-Identifier: BSL-1.0
// Reports: their counts and texts. Text from a server can't break a log line.
#include <redlock/report.hpp>

#include "manager/access.hpp"

#include <boost/asio/error.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using namespace std::string_literals;

/// A report on masters 10.0.0.1, 10.0.0.2, ... with these votes.
report over(operation verb, std::initializer_list<master_report> votes)
{
    auto names = std::make_shared<detail::master_names>();
    for (std::size_t number = 1; number <= votes.size(); ++number)
    {
        names->push_back("redis://10.0.0." + std::to_string(number) + ":6379");
    }
    report result;
    result.operation = verb;
    result.rounds = 1;
    result.node_timeout = 50ms;
    result.elapsed = 50'100us;
    detail::access::assign(result, std::move(names), std::vector<master_report>{votes});
    return result;
}

master_report
voted(vote value, std::chrono::nanoseconds elapsed = 0ns, error_code reason = {}, const char* detail = "")
{
    return {value, elapsed, reason, short_text{detail}};
}

std::string escaped(std::string_view raw)
{
    return std::string{short_text{raw}.view()};
}

bool is_printable(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char one) { return one >= ' ' && one <= '~'; });
}

std::string unescaped(std::string_view text)
{
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at)
    {
        if (text[at] != '\\' || at + 1 >= text.size())
        {
            result += text[at];
        }
        else if (text[++at] == 'x' && at + 2 < text.size())
        {
            result +=
                static_cast<char>(std::strtol(std::string{text.substr(at + 1, 2)}.c_str(), nullptr, 16));
            at += 2;
        }
        else
        {
            result += text[at] == 'r' ? '\r' : '\n';
        }
    }
    return result;
}

} // namespace

TEST_CASE("a short text keeps printable text unchanged")
{
    CHECK(escaped("") == "");
    CHECK(short_text{}.view().empty());
    CHECK(
        escaped("OOM command not allowed when used memory > 'maxmemory'.") ==
        "OOM command not allowed when used memory > 'maxmemory'.");
    CHECK(escaped(" ~\"%{}") == " ~\"%{}");
}

TEST_CASE("a short text escapes line ends, NUL and all other unprintable bytes", "[scenario-51]")
{
    CHECK(escaped("a\r\nINFO all is well\r\n") == "a\\r\\nINFO all is well\\r\\n");
    CHECK(escaped("a\0b"s) == "a\\x00b");
    CHECK(escaped("\x1b[31m\t\x7f\x80\xff") == "\\x1b[31m\\x09\\x7f\\x80\\xff");
}

TEST_CASE("escaping a short text twice changes nothing", "[scenario-51]")
{
    std::string all;
    for (int byte = 0; byte < 24; ++byte)
    {
        all += static_cast<char>(byte);
    }
    const std::string once = escaped(all + "\\");
    CHECK(once.find("...") == std::string::npos);
    CHECK(escaped(once) == once);
}

TEST_CASE("a short text is truncated with a mark that fits, and never inside an escape", "[scenario-51]")
{
    const std::string exact(short_text::capacity, 'x');
    CHECK(escaped(exact) == exact);
    CHECK(escaped(exact + "x") == std::string(short_text::capacity - 3, 'x') + "...");
    CHECK(escaped(std::string(30, '\0')).size() == 4 * 23 + 3);
    CHECK(escaped(std::string(30, '\0')).ends_with("\\x00..."s));
    std::mt19937_64 random{20240906};
    for (int run = 0; run < 5000; ++run)
    {
        std::string raw(random() % 130, ' ');
        for (char& one : raw)
        {
            // A backslash isn't escaped, which would make the reverse ambiguous.
            one =
                random() % 3 == 0 ? static_cast<char>(random() % 32) : static_cast<char>('a' + random() % 26);
        }
        const std::string text = escaped(raw);
        const bool cut = text.ends_with("...");
        const std::string back = unescaped(cut ? text.substr(0, text.size() - 3) : text);
        CAPTURE(raw, text);
        REQUIRE(text.size() <= short_text::capacity);
        REQUIRE(is_printable(text));
        REQUIRE((cut ? raw.starts_with(back) && back.size() < raw.size() : back == raw));
        // It isn't truncated more than necessary: an escape has 4 bytes at most, and the next one didn't fit.
        REQUIRE((!cut || text.size() + 4 > short_text::capacity));
    }
}

TEST_CASE("every operation has a text")
{
    CHECK(to_string(operation::acquire) == "acquire");
    CHECK(to_string(operation::extend) == "extend");
    CHECK(to_string(operation::release) == "release");
    CHECK(to_string(static_cast<operation>(77)) == "unknown");
}

TEST_CASE("an empty report has no votes, and its text shows none")
{
    const report empty;
    CHECK(empty.masters().empty());
    CHECK(empty.count(vote::granted) == 0);
    CHECK_FALSE(empty.already_gone());
    CHECK(empty.to_string() == "acquire: success");
}

TEST_CASE("a report provides its votes, names and quorum")
{
    const report five = over(
        operation::acquire, {voted(vote::granted), voted(vote::denied), voted(vote::granted),
                             voted(vote::unsent), voted(vote::timed_out)});
    CHECK(five.masters().size() == 5);
    CHECK(five.quorum() == 3);
    CHECK(five.count(vote::granted) == 2);
    CHECK(five.count(vote::denied) == 1);
    CHECK(five.count(vote::failed) == 0);
    CHECK(five.name(3) == "redis://10.0.0.4:6379");
    CHECK(five.masters()[4].vote == vote::timed_out);
}

TEST_CASE("a report can be assigned again, and keeps no previous vote")
{
    report value =
        over(operation::acquire, {voted(vote::granted), voted(vote::granted), voted(vote::granted)});
    detail::access::assign(
        value, std::make_shared<detail::master_names>(detail::master_names{"redis://b:1"}),
        std::vector<master_report>{voted(vote::denied)});
    CHECK(value.masters().size() == 1);
    CHECK(value.count(vote::granted) == 0);
    CHECK(value.name(0) == "redis://b:1");
    detail::access::assign(value, std::make_shared<detail::master_names>(), {});
    CHECK(value.masters().empty());
}

TEST_CASE("a report that was moved from shows no votes")
{
    report value = over(operation::acquire, {voted(vote::granted)});
    const report taken = std::move(value);
    CHECK(taken.to_string().find("10.0.0.1") != std::string::npos);
    CHECK(value.to_string().find('\n') == std::string::npos);
}

TEST_CASE("a report outlives the list of names it was made from")
{
    report value = over(operation::acquire, {voted(vote::granted)});
    const report copy = value;
    detail::access::assign(value, std::make_shared<detail::master_names>(), {});
    CHECK(copy.name(0) == "redis://10.0.0.1:6379");
}

TEST_CASE("a report has room for the maximum number of masters")
{
    auto names = std::make_shared<detail::master_names>(max_masters, "redis://many:1");
    report value;
    detail::access::assign(
        value, std::move(names), std::vector<master_report>(max_masters, voted(vote::granted)));
    CHECK(value.count(vote::granted) == max_masters);
    CHECK(value.quorum() == 16);
}

TEST_CASE("already_gone() is true only for a release, if a quorum of masters no longer had the key")
{
    const auto gone = voted(vote::denied);
    CHECK(over(operation::release, {gone, gone, voted(vote::granted)}).already_gone());
    CHECK(over(operation::release, {gone, gone, voted(vote::timed_out)}).already_gone());
    CHECK_FALSE(over(operation::release, {gone, voted(vote::granted), voted(vote::granted)}).already_gone());
    CHECK_FALSE(over(operation::extend, {gone, gone, gone}).already_gone());
    CHECK_FALSE(over(operation::acquire, {gone, gone, gone}).already_gone());
}

TEST_CASE("the text of a failed acquire has the reason of each master")
{
    report value = over(
        operation::acquire,
        {voted(vote::granted, 200us), voted(vote::timed_out, 50ms, master_errc::timed_out),
         voted(vote::unsent, 0ms, boost::asio::error::connection_refused),
         voted(vote::failed, 1234us, master_errc::out_of_memory, "OOM command not allowed"),
         voted(vote::denied, 12'345us), voted(vote::pending)});
    value.result = errc::no_quorum;
    value.rounds = 3;
    const std::string no_quorum = error_code{errc::no_quorum}.message();
    const std::string expected =
        "acquire: no quorum (" + no_quorum +
        "): 1 granted, 1 denied of 6; 4 needed; node timeout 50 ms; round 3 took 50.1 ms\n"
        "  redis://10.0.0.1:6379: granted after 0.20 ms\n"
        "  redis://10.0.0.2:6379: timed out after 50.0 ms: " +
        error_code{master_errc::timed_out}.message() +
        "\n"
        "  redis://10.0.0.3:6379: unsent: Connection refused\n"
        "  redis://10.0.0.4:6379: failed after 1.2 ms: " +
        error_code{master_errc::out_of_memory}.message() +
        " (\"OOM command not allowed\")\n"
        "  redis://10.0.0.5:6379: denied after 12.3 ms\n"
        "  redis://10.0.0.6:6379: pending";
    CHECK(value.to_string() == expected);
    std::ostringstream out;
    out << value;
    CHECK(out.str() == expected);
}

TEST_CASE("the text of a success has the validity")
{
    report value = over(operation::acquire, {voted(vote::granted, 200us)});
    value.validity = 9'897'900us;
    CHECK(
        value.to_string() ==
        "acquire: success: 1 granted, 0 denied of 1; 1 needed; node timeout 50 ms; round "
        "1 took 50.1 ms; valid for "
        "9897.9 ms\n  redis://10.0.0.1:6379: granted after 0.20 ms");
}

TEST_CASE("a release has its own wording")
{
    report value = over(
        operation::release, {voted(vote::granted, 1ms), voted(vote::denied, 2ms), voted(vote::denied, 3ms)});
    const std::string text = value.to_string();
    INFO(text);
    CHECK(text.starts_with(
        "release: success (the key was already missing on a quorum): 1 released, 2 already gone of 3;"));
    CHECK(text.find("10.0.0.1:6379: released after 1.0 ms") != std::string::npos);
    CHECK(text.find("10.0.0.3:6379: already gone after 3.0 ms") != std::string::npos);
    CHECK(text.find("granted") == std::string::npos);
    CHECK(text.find("denied") == std::string::npos);
}

TEST_CASE("an extension has its own wording")
{
    report value = over(operation::extend, {voted(vote::granted, 1ms), voted(vote::denied, 2ms)});
    value.result = errc::lease_lost;
    const std::string text = value.to_string();
    INFO(text);
    CHECK(text.starts_with("extend: lease lost ("));
    CHECK(text.find("1 extended, 1 not ours of 2;") != std::string::npos);
    CHECK(text.find("10.0.0.1:6379: extended after 1.0 ms") != std::string::npos);
    CHECK(text.find("10.0.0.2:6379: not ours after 2.0 ms") != std::string::npos);
    CHECK(text.find("granted") == std::string::npos);
}

TEST_CASE("the text of a refused argument is the complaint, without votes")
{
    report value;
    value.result = errc::invalid_ttl;
    value.argument_error = "a ttl of 0 ms can't be used: it must be from 5 ms";
    CHECK(value.to_string() == "acquire: refused (a ttl of 0 ms can't be used: it must be from 5 ms)");
}

TEST_CASE(
    "every result of the library has a short text in the report, and those of the system have their message")
{
    report value;
    for (int result = 1; result <= static_cast<int>(errc::provisioning_failed); ++result)
    {
        value.result = static_cast<errc>(result);
        CAPTURE(value.to_string());
        CHECK(value.to_string().ends_with(" (" + value.result.message() + ")"));
        CHECK(value.to_string().find(": (") == std::string::npos);
    }
    value.result = boost::asio::error::operation_aborted;
    CHECK(value.to_string() == "acquire: " + value.result.message());
    // The number is also one of `errc`, but the category differs.
    value.result = master_errc::timed_out;
    CHECK(value.to_string() == "acquire: " + value.result.message());
}

TEST_CASE("text from a server can't begin a new line in a report", "[scenario-51]")
{
    const std::string said = "ERR \r\n  redis://10.0.0.9:6379: granted\0\x1b[2J"s;
    report value = over(operation::acquire, {voted(vote::failed, 1ms, master_errc::command_failed)});
    auto votes = std::vector<master_report>{value.masters().begin(), value.masters().end()};
    votes[0].detail = short_text{said};
    detail::access::assign(
        value, std::make_shared<detail::master_names>(detail::master_names{"redis://a:1"}), votes);
    const std::string text = value.to_string();
    INFO(text);
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    CHECK(text.find('\r') == std::string::npos);
    CHECK(text.find('\0') == std::string::npos);
    CHECK(text.find("(\"ERR \\r\\n  redis://10.0.0.9:6379: granted\\x00\\x1b[2J\")") != std::string::npos);
}

} // namespace redlock::test
