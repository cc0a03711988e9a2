// SPDX-License-Identifier: BSL-1.0
// Checks the events of a process.
#include "event_check.hpp"

#include <boost/asio/error.hpp>
#include <boost/hana/functional/overload.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <variant>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace std::string_view_literals;

/// Clocks show whole nanoseconds, and the steps between two readings may be rounded down.
constexpr clock::duration clock_step = 1us;

std::string_view name_of(expected_event what)
{
    constexpr std::array<std::string_view, 3> names{"failed extension", "loss", "release"};
    return names.at(static_cast<std::size_t>(what));
}

/// Reads the reply to TIME: two strings, seconds and microseconds. Returns microseconds.
std::optional<std::int64_t> read_time(const std::string& reply)
{
    long long seconds = 0;
    long long microseconds = 0;
    if (std::sscanf(reply.c_str(), "*2\r\n$%*d\r\n%lld\r\n$%*d\r\n%lld", &seconds, &microseconds) != 2)
    {
        return std::nullopt;
    }
    return seconds * 1'000'000 + microseconds;
}

/// A release that is answered like this isn't repeated.
bool is_refused_for_good(const std::string& reply)
{
    return reply.starts_with("-NOPERM") || reply.starts_with("-NOREPLICAS") ||
           reply.starts_with("-WRONGTYPE");
}

/// PTTL answers -2 if there is no key, and -1 if it doesn't expire: a position doesn't tell which.
std::string without_key_as_without_expiry(std::string reply)
{
    const std::size_t found = reply.find("\r\n:-2\r\n");
    return found == std::string::npos ? reply : reply.replace(found, 7, "\r\n:-1\r\n");
}

/// Returns the reply to a question that says this.
std::string refusal_of(const queue_position& position)
{
    return fmt::format(
        "*3\r\n:{}\r\n:{}\r\n:{}\r\n", position.ahead,
        position.key_expires_in ? position.key_expires_in->count() : -1, position.waiting);
}

// A probe is sent after the reply to the previous one, so the second one shows that everything before the first has
// been answered.
constexpr int probes_that_show = 2;

} // namespace

/// The validity in a report is what is left of the lease at that moment, and not what was left when its command was sent.
std::optional<std::string>
event_check::decided(const round_decided& one, std::optional<clock::time_point> now)
{
    const report& told = one.report;
    if (told.operation == operation::extend && told.result)
    {
        told_.emplace(expected_event::failed_extension, one.owner_id);
        return lost_.contains(one.owner_id) ? std::optional{"a failed extension is reported after the loss"s}
                                            : std::nullopt;
    }
    if (told.result || told.operation == operation::release)
    {
        return told.validity == clock::duration::zero()
                   ? std::nullopt
                   : std::optional{"a round that gives no lease has a validity"s};
    }
    if (!now)
    {
        return std::nullopt;
    }
    if (told.operation == operation::acquire)
    {
        valid_until_.insert_or_assign(one.owner_id, *now + told.validity);
        return std::nullopt;
    }
    const std::optional<clock::time_point> until = valid_until(one.owner_id);
    if (until && std::chrono::abs(*now + told.validity - *until) > clock_step)
    {
        return fmt::format(
            "an extension of {} is reported with a validity of {} us, of which there are {} us", one.owner_id,
            told.validity / 1us, (*until - *now) / 1us);
    }
    return std::nullopt;
}

std::optional<clock::time_point> event_check::valid_until(std::string_view owner_id) const
{
    const auto found = valid_until_.find(owner_id);
    const bool is_known = found != valid_until_.end() && dropped_ == 0;
    return is_known ? std::optional{found->second} : std::nullopt;
}

std::optional<std::string>
event_check::notified(int manager, const event& what, std::optional<clock::time_point> now)
{
    std::optional<std::string> wrong;
    const auto check = [&](bool holds, std::string_view words)
    {
        if (!holds && !wrong)
        {
            wrong = words;
        }
    };
    std::visit(
        boost::hana::overload(
            [&](const master_up& one)
            {
                bool& up = up_[{manager, one.index}];
                check(
                    !up || dropped_ > 0,
                    fmt::format("master {} is up twice, and was not down between", one.index));
                up = true;
                outages_[{manager, one.index}].clear();
                ++ups_[one.index];
            },
            [&](const master_down& one)
            {
                check(
                    one.reason != boost::asio::error::operation_aborted,
                    fmt::format("master {} is reported down because its connection was closed", one.index));
                check(
                    outages_[{manager, one.index}].insert(one.reason).second || dropped_ > 0,
                    fmt::format(
                        "one outage of master {} is reported twice: {}", one.index, one.reason.message()));
                up_[{manager, one.index}] = false;
            },
            [&](const master_warning& one)
            {
                clock_warnings_[one.index] += one.what == risk::clock ? 1 : 0;
                refusal_warnings_[one.index] += one.what == risk::release_refused ? 1 : 0;
            },
            [&](const round_decided& one)
            {
                const auto contradiction = decided(one, now);
                check(!contradiction, contradiction.value_or(""));
            },
            [&](const acquire_queued& one)
            {
                const queue_position& told = one.position;
                check(
                    told.ahead < told.waiting && refused_questions_.contains(refusal_of(told)),
                    fmt::format("no master has answered that {} of {} are ahead", told.ahead, told.waiting));
            },
            [&](const lease_extended& one)
            {
                check(!lost_.contains(one.owner_id), "a lost lease is reported as extended");
                valid_until_.insert_or_assign(one.owner_id, one.valid_until);
            },
            [&](const lease_lost& one)
            {
                check(lost_.insert(one.owner_id).second, "a lease is reported lost twice");
                told_.emplace(expected_event::loss, one.owner_id);
            },
            [&](const lease_released& one) { told_.emplace(expected_event::release, one.owner_id); },
            [&](const events_dropped& some) { dropped_ += some.count; },
            [&](const master_quarantined& one)
            {
                in_quarantine_.emplace(manager, one.index);
                check(
                    has_shown("quarantine", to_string(one.why), {}),
                    fmt::format(
                        "no marker has shown the quarantine of master {}: {}", one.index,
                        to_string(one.why)));
            },
            [&](const master_armed& one)
            {
                check(
                    has_shown("armed", {}, one.incarnation),
                    fmt::format(
                        "no marker has shown that master {} is armed as {}", one.index, one.incarnation));
                check(
                    in_quarantine_.erase({manager, one.index}) > 0 || dropped_ > 0,
                    fmt::format("master {} is armed without a quarantine before", one.index));
            }),
        what);
    return wrong;
}

void event_check::record(
    std::size_t master, const std::string& run_id, std::int64_t connection, clock::time_point at,
    const std::string& what, const std::string& reply)
{
    if (what == "SET" || what == "ask" || what == "extend" || what == "release")
    {
        used_.emplace(master, run_id, connection);
    }
    if (what == "ask" && reply.starts_with('*'))
    {
        refused_questions_.insert(without_key_as_without_expiry(reply));
    }
    if (what == "release" && is_refused_for_good(reply))
    {
        refused_.try_emplace({master, run_id, connection}, 0);
    }
    if (what != "TIME")
    {
        return;
    }
    if (const auto found = refused_.find({master, run_id, connection}); found != refused_.end())
    {
        ++found->second;
    }
    const auto shown = read_time(reply);
    if (!shown)
    {
        return;
    }
    clock_readings& all = clocks_[{master, run_id}];
    // The next probe on a connection shows that the reply to the previous one has arrived.
    if (all.connection == connection)
    {
        if (all.confirmed)
        {
            const clock::duration elapsed = all.last.first - all.confirmed->first;
            const clock::duration advanced =
                std::chrono::microseconds{all.last.second - all.confirmed->second};
            // More than any drift or round trip of a simulation explains.
            jumps_[master] += std::chrono::abs(advanced - elapsed) > 700ms + elapsed / 3 ? 1 : 0;
        }
        all.confirmed = all.last;
    }
    all.connection = connection;
    all.last = {at, *shown};
}

void event_check::record_shown(
    std::size_t master, std::int64_t connection, const std::string& what, const std::string& reply)
{
    look_of_connection& look = looks_[{master, connection}];
    if (what == "INFO")
    {
        look.was_current = reply.find("master_replid:" + look.marker.replication_id) != std::string::npos &&
                           reply.find("role:master") != std::string::npos;
        return;
    }
    // redlock 1 <group> <seat> <masters> <max ttl> <policy> <state> <why> <nonce> <replication id>
    const std::size_t begin = reply.find("redlock 1 ");
    std::array<char, 16> state{};
    std::array<char, 16> why{};
    std::array<char, 32> nonce{};
    std::array<char, 64> id{};
    if (begin == std::string::npos ||
        std::sscanf(
            reply.c_str() + begin, "redlock 1 %*s %*s %*s %*s %*s %15s %15s %31s %63s", state.data(),
            why.data(), nonce.data(), id.data()) != 4)
    {
        return;
    }
    const shown_marker shown{
        state.data(), why.data() == "new"sv ? "created" : why.data(), nonce.data(), id.data()};
    markers_.insert(shown);
    if (what == "GET") // The first command of a look.
    {
        // The next look on a connection shows that the replies to the previous one have arrived.
        if (look.was_current && look.marker.state == "armed")
        {
            armed_[master] = look.marker.nonce;
        }
        look = {shown, false};
        if (shown.state != "armed")
        {
            armed_.erase(master);
        }
    }
}

bool event_check::has_shown(std::string_view state, std::string_view why, std::string_view nonce) const
{
    return std::any_of(
        markers_.begin(), markers_.end(),
        [&](const shown_marker& each)
        {
            return each.state == state && (why.empty() || each.why == why) &&
                   (nonce.empty() || each.nonce == nonce);
        });
}

std::string event_check::missing() const
{
    std::vector<std::string> all;
    for (const auto& [what, owner_id] : expected_)
    {
        if (!told_.contains({what, owner_id}))
        {
            all.push_back(fmt::format("the {} of {}", name_of(what), owner_id));
        }
    }
    std::map<std::size_t, std::size_t> connections;
    for (const auto& each : used_)
    {
        ++connections[std::get<0>(each)];
    }
    const auto compare = [&](const auto& happened, const auto& reported, std::string_view what)
    {
        for (const auto& [master, times] : happened)
        {
            const auto found = reported.find(master);
            for (std::size_t known = found == reported.end() ? 0 : found->second; known < times; ++known)
            {
                all.push_back(fmt::format("{} of master {}", what, master));
            }
        }
    };
    std::map<std::size_t, std::size_t> refusals;
    for (const auto& [connection, probes] : refused_)
    {
        refusals[std::get<0>(connection)] += probes >= probes_that_show ? 1 : 0;
    }
    compare(connections, ups_, "a connection");
    compare(refusals, refusal_warnings_, "a refused release");
    compare(jumps_, clock_warnings_, "a jump of the clock");
    for (const auto& [manager, master] : in_quarantine_)
    {
        const auto found = armed_.find(master);
        if (found != armed_.end() && has_shown("quarantine", {}, found->second))
        {
            all.push_back(fmt::format("the end of the quarantine of master {}", master));
        }
    }
    return all.size() <= dropped_ ? "" : fmt::format("the observer was never notified of {}", all.front());
}

} // namespace redlock::test
