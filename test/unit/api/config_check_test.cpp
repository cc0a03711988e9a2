// SPDX-License-Identifier: BSL-1.0
// Which manager options are refused, and with which message.
#include "api/config_check.hpp"

#include <redlock/error.hpp>
#include <redlock/vote.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// Returns the complaint of `check`; empty if it accepts the options.
std::pair<error_code, std::string> complaint(const config& options)
{
    try
    {
        api::check(options);
        return {};
    }
    catch (const system_error& error)
    {
        return {error.code(), error.what()};
    }
}

config one_master()
{
    return {.masters = {"redis://10.0.0.1"}};
}

void check_refused(const config& options, const std::string& value, const std::string& allowed)
{
    const auto [code, text] = complaint(options);
    INFO(text);
    CHECK(code == errc::invalid_config);
    CHECK(text.starts_with(value));
    CHECK(text.find(allowed) != std::string::npos);
}

std::vector<master> numbered(std::size_t count)
{
    std::vector<master> result;
    for (std::size_t number = 1; number <= count; ++number)
    {
        result.emplace_back("redis://10.0.0." + std::to_string(number));
    }
    return result;
}

struct duration_option
{
    const char* name;
    std::function<void(config&, milliseconds)> set;
};

const std::vector<duration_option> durations{
    {"node_timeout", [](config& options, milliseconds value) { options.node_timeout = value; }},
    {"connect_timeout", [](config& options, milliseconds value) { options.connect_timeout = value; }},
    {"probe_interval", [](config& options, milliseconds value) { options.probe_interval = value; }},
    {"response_timeout", [](config& options, milliseconds value) { options.response_timeout = value; }},
    {"reconnect_delay_min", [](config& options, milliseconds value) { options.reconnect_delay_min = value; }},
    {"reconnect_delay_max", [](config& options, milliseconds value) { options.reconnect_delay_max = value; }},
    {"retry_delay_min", [](config& options, milliseconds value) { options.retry_delay_min = value; }},
    {"retry_delay_max", [](config& options, milliseconds value) { options.retry_delay_max = value; }},
};

} // namespace

TEST_CASE("the defaults are accepted with one master and with the maximum number")
{
    CHECK(complaint(one_master()).second.empty());
    CHECK(complaint({.masters = numbered(2)}).second.empty());
    CHECK(complaint({.masters = numbered(max_masters)}).second.empty());
}

TEST_CASE("an empty list of masters and one that is too long are refused")
{
    check_refused({}, "there are no masters", "there must be 1 to 31");
    check_refused({.masters = numbered(32)}, "there are 32 masters", "there must be 1 to 31");
}

TEST_CASE("the same server given twice is refused, however it is spelled")
{
    const std::vector<std::pair<master, master>> same{
        {"redis://10.0.0.1", "redis://10.0.0.1:6379"},
        {"redis://redis-a.example", "redis://Redis-A.EXAMPLE"},
        {"redis://redis-a.example", "redis://redis-a.example."},
        {"redis://10.0.0.1/0", "redis://10.0.0.1/3"},
        {"redis://10.0.0.1", "redis://alice:sesame@10.0.0.1"},
        {"redis://[::1]", tcp_address{.host = "0:0:0:0:0:0:0:1"}},
        {"redis://[FE80::1]", "redis://[fe80::1]"},
        {"unix:///run/redis.sock", "unix:///run/redis.sock?db=4"},
    };
    for (const auto& [first, second] : same)
    {
        CAPTURE(first.name(), second.name());
        const auto [code, text] = complaint({.masters = {"redis://other", first, "redis://another", second}});
        INFO(text);
        CHECK(code == errc::invalid_master);
        CHECK(text.find("2 (" + first.name() + ") and 4 (" + second.name() + ")") != std::string::npos);
        CHECK(text.find("sesame") == std::string::npos);
    }
}

TEST_CASE("different servers aren't mistaken for the same one")
{
    const std::vector<std::pair<master, master>> different{
        {"redis://10.0.0.1:6379", "redis://10.0.0.1:6380"},
        {"redis://10.0.0.1", "redis://10.0.0.11"},
        {"redis://[::1]", "redis://[::2]"},
        {"unix:///run/redis.sock", "unix:///run/Redis.sock"},
        {"unix:///run/redis.sock", "redis://run"},
    };
    for (const auto& [first, second] : different)
    {
        CAPTURE(first.name(), second.name());
        CHECK(complaint({.masters = {first, second}}).second.empty());
    }
}

TEST_CASE("durations are refused below 1 ms and above an hour")
{
    for (const duration_option& option : durations)
    {
        for (const milliseconds value : {0ms, -1ms, milliseconds::min(), 3'600'001ms, milliseconds::max()})
        {
            config options = one_master();
            option.set(options, value);
            check_refused(
                options,
                "a " + std::string{option.name} + " of " + std::to_string(value.count()) +
                    " ms can't be used",
                "it must be from 1 to 3600000 ms");
        }
    }
}

TEST_CASE("durations are accepted from 1 ms to an hour")
{
    for (const milliseconds value : {1ms, 3'600'000ms})
    {
        config options = one_master();
        for (const duration_option& option : durations)
        {
            option.set(options, value);
        }
        CHECK(complaint(options).second.empty());
    }
}

TEST_CASE("a minimum delay above the maximum is refused")
{
    config options = one_master();
    options.retry_delay_min = 501ms;
    check_refused(
        options, "a retry_delay_min of 501 ms can't be used",
        "from 1 ms to retry_delay_max, which is 500 ms");
    options = one_master();
    options.reconnect_delay_max = 9ms;
    check_refused(
        options, "a reconnect_delay_min of 10 ms can't be used",
        "from 1 ms to reconnect_delay_max, which is 9 ms");
}

TEST_CASE("a drift factor is refused outside of 0 to 0.5, and when it isn't a number")
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const auto& [factor, shown] : std::vector<std::pair<double, std::string>>{
             {-0.01, "-0.01"},
             {0.51, "0.51"},
             {0.5000001, "0.5000001"},
             {infinity, "inf"},
             {-infinity, "-inf"},
             {std::numeric_limits<double>::quiet_NaN(), "nan"}})
    {
        config options = one_master();
        options.drift_factor = factor;
        check_refused(options, "a drift_factor of " + shown + " can't be used", "it must be from 0 to 0.5");
    }
    for (const double factor : {0.0, 0.5})
    {
        config options = one_master();
        options.drift_factor = factor;
        CHECK(complaint(options).second.empty());
    }
}

TEST_CASE("a key prefix is refused above 1 KiB, and may contain any bytes")
{
    config options = one_master();
    options.key_prefix = std::string(1024, '\0');
    CHECK(complaint(options).second.empty());
    options.key_prefix = {};
    CHECK(complaint(options).second.empty());
    options.key_prefix = std::string(1025, 'k');
    check_refused(options, "a key_prefix of 1025 bytes", "0 to 1024");
    options.key_prefix = "redlock-queue:";
    check_refused(options, "a key_prefix that begins with redlock-queue:", "no other key");
    options.key_prefix = "mine:redlock-guard";
    check_refused(
        options, "a key_prefix with :redlock-guard, :redlock-fence or :redlock-members", "no other key");
}

TEST_CASE("a group is refused unless it is the name of one", "[guarded]")
{
    config options = one_master();
    options.guarded.emplace();
    CHECK(complaint(options).second.empty());
    options.guarded->group = "0123456789abcdef";
    CHECK(complaint(options).second.empty());
    for (const char* const wrong : {"0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "my group"})
    {
        options.guarded->group = wrong;
        check_refused(
            options, std::string{"a guarded.group of '"} + wrong + "' can't be used",
            "16 digits of 0-9 and a-f");
    }
}

TEST_CASE("a client name is refused unless it is short, printable and without spaces", "[scenario-51]")
{
    config options = one_master();
    for (const std::string& good : {std::string{}, std::string(64, 'n'), std::string{"!~-billing@host:1"}})
    {
        options.client_name = good;
        CHECK(complaint(options).second.empty());
    }
    options.client_name = std::string(65, 'n');
    check_refused(
        options, "a client_name of 'nnn", "(65 bytes) can't be used: it may have 0 to 64 bytes, printable");
    for (const auto& [bad, shown] : std::vector<std::pair<std::string, std::string>>{
             {"my app", "my app"},
             {"a\r\nb", "a\\r\\nb"},
             {{"a\0b", 3}, "a\\x00b"},
             {"gr\xc3\xbc", "gr\\xc3\\xbc"},
             {"\x7f", "\\x7f"}})
    {
        options.client_name = bad;
        check_refused(options, "a client_name of '" + shown + "'", "printable and without spaces");
    }
}

TEST_CASE("limits of 0 are refused, and those of 1 accepted")
{
    const std::vector<std::pair<const char*, std::function<void(config&, std::size_t)>>> limits{
        {"max_outstanding_keys",
         [](config& options, std::size_t value) { options.max_outstanding_keys = value; }},
        {"max_operations", [](config& options, std::size_t value) { options.max_operations = value; }},
        {"max_waiting_acquires",
         [](config& options, std::size_t value) { options.max_waiting_acquires = value; }},
        {"observer.max_waiting",
         [](config& options, std::size_t value) { options.observer.max_waiting = value; }}};
    for (const auto& [name, set] : limits)
    {
        CAPTURE(name);
        config options = one_master();
        set(options, 0);
        const std::string article = std::string{name}.starts_with('o') ? "an " : "a ";
        check_refused(options, article + name + " of 0 can't be used", "1 or more");
        set(options, 1);
        CHECK(complaint(options).second.empty());
    }
}

TEST_CASE("a write queue that doesn't hold a dozen commands is refused")
{
    config options = one_master();
    options.max_write_queue_bytes = 65'535;
    check_refused(options, "a max_write_queue_bytes of 65535 can't be used", "65536 or more");
    options.max_write_queue_bytes = 65'536;
    CHECK(complaint(options).second.empty());
}

TEST_CASE("values that an enumeration doesn't have are refused")
{
    config options = one_master();
    options.order = static_cast<order>(2);
    check_refused(options, "an order of 2 can't be used", "order::waiting or order::strict");
    check_refused(
        {.masters = {"rediss://a"}, .tls = {.verification = static_cast<tls_verification>(2)}},
        "a tls.verification of 2 can't be used", "tls_verification::peer_and_host_name");
}

TEST_CASE(
    "each option for TLS is refused without a master over TLS, and accepted with one at any place", "[tls]")
{
    const std::vector<tls_options> all{
        {.ca_file = "/ca"},
        {.certificate_file = "/c", .private_key_file = "/k"},
        {.verification = tls_verification::dangerously_off},
        {.ciphers = "DEFAULT"}};
    for (const tls_options& each : all)
    {
        check_refused(
            {.masters = {"redis://10.0.0.1"}, .tls = each}, "config::tls is set", "no master uses TLS");
        CHECK(complaint({.masters = {"rediss://a", "redis://b"}, .tls = each}).second.empty());
        CHECK(complaint({.masters = {"redis://a", "rediss://b"}, .tls = each}).second.empty());
    }
    check_refused(
        {.masters = {"rediss://a"}, .tls = {.certificate_file = "/c"}}, "a tls.certificate_file alone",
        "give tls.private_key_file as well");
    check_refused(
        {.masters = {"rediss://a"}, .tls = {.private_key_file = "/k"}}, "a tls.private_key_file alone",
        "give tls.certificate_file as well");
}

} // namespace redlock::test
