// SPDX-License-Identifier: BSL-1.0
// The lines of a trace: the true time, the party, the time by its own clock, and the event. How commands, replies and
// reports enter its hash.
#include "trace.hpp"

#include "resource_names.hpp"
#include "simulation/virtual_world.hpp"
#include "support/fake_replies.hpp"
#include "trace_numbers.hpp"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace redlock::test
{

namespace
{

/// Returns the number of a command as `what_of` classifies it. A new command takes the next place.
std::uint64_t command_number(std::string_view what)
{
    constexpr std::array<std::string_view, 36> numbered_from_one{
        "SET",         "extend",       "release",    "ask",       "EVAL",
        "EVALSHA",     "HELLO",        "AUTH",       "CLIENT ID", "CLIENT SETNAME",
        "CLIENT KILL", "may kill?",    "SELECT",     "INFO",      "TIME",
        "SCRIPT LOAD", "SCRIPT FLUSH", "CONFIG",     "SUBSCRIBE", "PUBLISH",
        "acquire",     "raise",        "quarantine", "arm",       "largest counter",
        "GET",         "HGET",         "DEL",        "SWAPDB",    "FLUSHALL",
        "trial",       "HELLO again",  "may greet?", "look",      "retire",
        "queue trial"};
    const auto* const found = std::find(numbered_from_one.begin(), numbered_from_one.end(), what);
    if (found == numbered_from_one.end())
    {
        throw std::logic_error{"the trace has no number for the command " + std::string{what}};
    }
    return static_cast<std::uint64_t>(found - numbered_from_one.begin()) + 1;
}

/// Returns the index of the first argument of a script, after the number of its keys and these.
std::size_t first_argument(const command& words)
{
    return 3 + integer_in<std::size_t>(words[2]).value_or(1);
}

/// Returns the number of an error's category; 0 for success.
std::uint64_t category_number(const error_code& error)
{
    const std::array<const boost::system::error_category*, 6> numbered_from_one{
        &error_category(),
        &master_category(),
        &boost::system::system_category(),
        &boost::system::generic_category(),
        &boost::asio::error::get_misc_category(),
        &boost::asio::error::get_netdb_category()};
    const auto* const found = std::find_if(
        numbered_from_one.begin(), numbered_from_one.end(),
        [&](const auto* each) { return *each == error.category(); });
    return error ? static_cast<std::uint64_t>(found - numbered_from_one.begin()) + 1 : 0;
}

} // namespace

std::string_view name_of(action what) noexcept
{
    constexpr std::array<std::string_view, 20> from_one{
        "try_acquire",
        "acquire",
        "acquire_kept",
        "with_lock",
        "extend",
        "release",
        "wait_lost",
        "inspect",
        "examine",
        "shutdown",
        "wrong request",
        "holds the lease",
        "gives the lease up",
        "drops a lease",
        "is killed",
        "is killed, its connections are reset",
        "drops its manager",
        "is notified",
        "acquires its own resource",
        "probes"};
    return from_one[static_cast<std::size_t>(what) - 1];
}

std::string in_seconds(clock::time_point when)
{
    const auto microseconds = std::chrono::floor<std::chrono::microseconds>(when - beginning).count();
    const auto whole = microseconds < 0 ? -microseconds : microseconds;
    return fmt::format("{}{}.{:06}", microseconds < 0 ? "-" : "", whole / 1'000'000, whole % 1'000'000);
}

void trace::print(
    clock::time_point truth, std::string_view who, clock::time_point its_clock, std::string_view what)
{
    fmt::print(out_, "{:>12} {:<10} {:>12}  {}\n", in_seconds(truth), who, in_seconds(its_clock), what);
}

void trace::add_bytes(std::string_view bytes) noexcept
{
    add({bytes.size()});
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof(std::uint64_t))))
    {
        std::uint64_t piece = 0;
        bytes.copy(reinterpret_cast<char*>(&piece), sizeof piece);
        add({piece});
    }
}

void trace::add_words(const command& words, std::size_t first)
{
    for (std::size_t at = first; at < words.size(); ++at)
    {
        add_bytes(words[at]);
    }
}

void trace::add_reply(std::string_view what, std::string_view reply)
{
    const bool has_data =
        what == "TIME" || what == "EVAL"; // The only script without a name is an inspection.
    if (has_data && !reply.starts_with('-'))
    {
        add_bytes(reply);
    }
    else if (reply.starts_with('-') || reply.starts_with('+'))
    {
        add_bytes(reply.substr(0, reply.find_first_of(" \r")));
    }
    else
    {
        add_bytes(reply.substr(0, reply.starts_with(':') ? reply.find('\r') : 1));
    }
}

void trace::add_exchange(std::string_view what, const command& words, std::string_view reply)
{
    add({command_number(what), words.size()});
    const std::string_view name = words.front();
    if (what == "SET" && words.size() > 1)
    {
        add({resource_names::number_in(words[1])});
        add_words(words, 2);
    }
    else if (
        what == "quarantine" || what == "arm" || what == "largest counter" || what == "raise floor" ||
        what == "trial" || what == "look" || what == "retire" || what == "queue trial")
    {
        add({name == "EVAL" ? 1U : 0U}); // Its keys aren't those of a resource.
        add_words(words, first_argument(words));
    }
    else if ((name == "EVAL" || name == "EVALSHA") && words.size() > 3)
    {
        add({name == "EVAL" ? 1U : 0U, resource_names::number_in(words[3])});
        add_words(words, first_argument(words));
    }
    else if (what == "SELECT" || what == "INFO" || what == "CONFIG" || what == "CLIENT KILL")
    {
        add_words(words, 1);
    }
    add_reply(what, reply);
}

void trace::add_report(const report& from)
{
    add(
        {static_cast<std::uint64_t>(from.operation), from.rounds,
         static_cast<std::uint64_t>(from.elapsed.count()), static_cast<std::uint64_t>(from.validity.count()),
         from.argument_error.empty() ? 0U : 1U, from.masters().size()});
    add_error(from.result);
    for (const master_report& each : from.masters())
    {
        add({static_cast<std::uint64_t>(each.vote), static_cast<std::uint64_t>(each.elapsed.count())});
        add_error(each.reason);
    }
}

void trace::add_error(const error_code& error)
{
    add({category_number(error), static_cast<std::uint64_t>(error.value())});
}

} // namespace redlock::test
