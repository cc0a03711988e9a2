// SPDX-License-Identifier: BSL-1.0
// Checks the options of a manager.
#include "api/config_check.hpp"

#include "core/marker.hpp"
#include "net/queue_commands.hpp"
#include "net/reserved_keys.hpp"

#include <redlock/error.hpp>
#include <redlock/report.hpp>
#include <redlock/vote.hpp>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace redlock::api
{

namespace
{

using std::chrono::milliseconds;

constexpr milliseconds shortest{1};
constexpr milliseconds longest{std::chrono::hours{1}};
constexpr double largest_drift_factor = 0.5;
constexpr std::size_t max_prefix_size = 1024;
constexpr std::size_t max_client_name_size = 64;
constexpr std::size_t min_write_queue_bytes = 65'536; // About a dozen commands of maximum length.

/// Throws for an option: `value` is its name with its value, `allowed` the allowed range.
[[noreturn]] void refuse(const std::string& value, const std::string& allowed)
{
    throw system_error{errc::invalid_config, fmt::format("{} can't be used: {}", value, allowed)};
}

/// Returns a host in a form in which case, a trailing dot and the spelling of an IPv6 address make no difference.
std::string same_for_all_spellings(std::string host)
{
    for (char& one : host)
    {
        one = one >= 'A' && one <= 'Z' ? static_cast<char>(one - 'A' + 'a') : one;
    }
    if (host.ends_with('.'))
    {
        host.pop_back();
    }
    error_code not_a_number;
    const auto address = boost::asio::ip::make_address(host, not_a_number);
    return not_a_number ? host : address.to_string();
}

bool same_address(const master& left, const master& right)
{
    if (left.is_unix() || right.is_unix())
    {
        return left.is_unix() && right.is_unix() && left.host() == right.host();
    }
    return left.port() == right.port() &&
           same_for_all_spellings(left.host()) == same_for_all_spellings(right.host());
}

void check_masters(const std::vector<master>& masters)
{
    if (masters.empty() || masters.size() > max_masters)
    {
        const std::string count = masters.empty() ? "no" : std::to_string(masters.size());
        throw system_error{
            errc::invalid_config,
            fmt::format("there are {} masters: there must be 1 to {}", count, max_masters)};
    }
    for (std::size_t second = 1; second < masters.size(); ++second)
    {
        for (std::size_t first = 0; first < second; ++first)
        {
            if (same_address(masters[first], masters[second]))
            {
                throw system_error{
                    errc::invalid_master,
                    fmt::format(
                        "masters {} ({}) and {} ({}) are the same server, which would have two votes: give "
                        "each "
                        "server once, whatever the database",
                        first + 1, masters[first].name(), second + 1, masters[second].name())};
            }
        }
    }
}

void check_duration(std::string_view option, milliseconds value)
{
    if (value < shortest || value > longest)
    {
        refuse(
            fmt::format("a {} of {} ms", option, value.count()),
            fmt::format("it must be from {} to {} ms (an hour)", shortest.count(), longest.count()));
    }
}

/// `name` is the common part of the two options' names, without _min and _max.
void check_delays(std::string_view name, milliseconds min, milliseconds max)
{
    check_duration(fmt::format("{}_min", name), min);
    check_duration(fmt::format("{}_max", name), max);
    if (min > max)
    {
        refuse(
            fmt::format("a {}_min of {} ms", name, min.count()),
            fmt::format(
                "it must be from {} ms to {}_max, which is {} ms", shortest.count(), name, max.count()));
    }
}

void check_times(const config& options)
{
    if (options.node_timeout)
    {
        check_duration("node_timeout", *options.node_timeout);
    }
    // Written so that NaN is refused as well.
    if (!(options.drift_factor >= 0.0 && options.drift_factor <= largest_drift_factor))
    {
        refuse(
            fmt::format("a drift_factor of {}", options.drift_factor),
            fmt::format("it must be from 0 to {}", largest_drift_factor));
    }
    check_duration("connect_timeout", options.connect_timeout);
    check_duration("probe_interval", options.probe_interval);
    check_duration("response_timeout", options.response_timeout);
    check_delays("reconnect_delay", options.reconnect_delay_min, options.reconnect_delay_max);
    check_delays("retry_delay", options.retry_delay_min, options.retry_delay_max);
}

void check_texts(const config& options)
{
    if (options.key_prefix.size() > max_prefix_size)
    {
        refuse(
            fmt::format("a key_prefix of {} bytes", options.key_prefix.size()),
            fmt::format("it may have 0 to {} bytes", max_prefix_size));
    }
    if (options.key_prefix.starts_with(net::queue_key_prefix))
    {
        refuse(
            "a key_prefix that begins with redlock-queue:",
            "the keys of the wait queues begin so, and no other key may");
    }
    if (net::contains_guard_name(options.key_prefix))
    {
        refuse(
            "a key_prefix with :redlock-guard, :redlock-fence or :redlock-members",
            "the keys of guarded mode are named so, and no other key may be");
    }
    const std::string& name = options.client_name;
    const bool printable =
        std::all_of(name.begin(), name.end(), [](char one) { return one > ' ' && one < '\x7f'; });
    if (!printable || name.size() > max_client_name_size)
    {
        refuse(
            fmt::format("a client_name of '{}' ({} bytes)", short_text{name}.view(), name.size()),
            fmt::format("it may have 0 to {} bytes, printable and without spaces", max_client_name_size));
    }
}

void check_group(const config& options)
{
    const std::string group = options.guarded ? options.guarded->group : std::string{};
    const bool is_hexadecimal = group.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!group.empty() && (group.size() != core::guard_id_length || !is_hexadecimal))
    {
        refuse(
            fmt::format("a guarded.group of '{}'", short_text{group}.view()),
            fmt::format(
                "it must have {} digits of 0-9 and a-f, as redlock provision prints it, or be empty",
                core::guard_id_length));
    }
}

void check_tls(const config& options)
{
    const tls_options& tls = options.tls;
    const bool any = std::any_of(
        options.masters.begin(), options.masters.end(), [](const master& each) { return each.is_tls(); });
    if (!any && tls != tls_options{})
    {
        throw system_error{
            errc::invalid_config, "config::tls is set, but no master uses TLS: give its URL as rediss:// "
                                  "instead of redis://, or leave config::tls empty"};
    }
    if (tls.verification != tls_verification::peer_and_host_name &&
        tls.verification != tls_verification::dangerously_off)
    {
        refuse(
            fmt::format("a tls.verification of {}", static_cast<unsigned>(tls.verification)),
            "it must be tls_verification::peer_and_host_name or dangerously_off");
    }
    if (tls.certificate_file.empty() != tls.private_key_file.empty())
    {
        const bool certificate = !tls.certificate_file.empty();
        refuse(
            fmt::format("a tls.{}_file alone", certificate ? "certificate" : "private_key"),
            fmt::format("give tls.{}_file as well", certificate ? "private_key" : "certificate"));
    }
}

void check_limits(const config& options)
{
    const auto check_count = [](std::string_view option, std::size_t value)
    {
        if (value < 1)
        {
            refuse(fmt::format("a {} of 0", option), "it must be 1 or more");
        }
    };
    check_count("max_outstanding_keys", options.max_outstanding_keys);
    check_count("max_operations", options.max_operations);
    check_count("max_waiting_acquires", options.max_waiting_acquires);
    if (options.max_write_queue_bytes < min_write_queue_bytes)
    {
        refuse(
            fmt::format("a max_write_queue_bytes of {}", options.max_write_queue_bytes),
            fmt::format("it must be {} or more", min_write_queue_bytes));
    }
}

} // namespace

void check(const config& options)
{
    check_masters(options.masters);
    check_times(options);
    check_texts(options);
    check_group(options);
    check_tls(options);
    check_limits(options);
    if (options.order != order::waiting && options.order != order::strict)
    {
        refuse(
            fmt::format("an order of {}", static_cast<unsigned>(options.order)),
            "it must be order::waiting or order::strict");
    }
    if (options.observer.max_waiting < 1)
    {
        refuse("an observer.max_waiting of 0", "it must be 1 or more");
    }
}

} // namespace redlock::api
