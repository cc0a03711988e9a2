// SPDX-License-Identifier: BSL-1.0
// How commands, replies and reports enter the hash of a trace.
#include "wire_trace.hpp"

#include "resource_names.hpp"
#include "trace.hpp"
#include "trace_numbers.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::test
{

namespace
{

void add_words(trace& to, const command& words, std::size_t first)
{
    for (std::size_t at = first; at < words.size(); ++at)
    {
        to.add_bytes(words[at]);
    }
}

void add_reply(trace& to, std::string_view what, std::string_view reply)
{
    const bool has_data =
        what == "TIME" || what == "EVAL"; // The only script without a name is an inspection.
    if (has_data && !reply.starts_with('-'))
    {
        to.add_bytes(reply);
    }
    else if (reply.starts_with('-') || reply.starts_with('+'))
    {
        to.add_bytes(reply.substr(0, reply.find_first_of(" \r")));
    }
    else
    {
        to.add_bytes(reply.substr(0, reply.starts_with(':') ? reply.find('\r') : 1));
    }
}

} // namespace

void add_exchange(trace& to, std::string_view what, const command& words, std::string_view reply)
{
    to.add({command_number(what), words.size()});
    const std::string_view name = words.front();
    if (what == "SET" && words.size() > 1)
    {
        to.add({resource_names::number_in(words[1])});
        add_words(to, words, 2);
    }
    else if ((name == "EVAL" || name == "EVALSHA") && words.size() > 3)
    {
        to.add({name == "EVAL" ? 1U : 0U, resource_names::number_in(words[3])});
        add_words(to, words, 4);
    }
    else if (what == "SELECT" || what == "INFO" || what == "CONFIG" || what == "CLIENT KILL")
    {
        add_words(to, words, 1);
    }
    add_reply(to, what, reply);
}

void add_report(trace& to, const report& from)
{
    to.add(
        {static_cast<std::uint64_t>(from.operation), from.rounds,
         static_cast<std::uint64_t>(from.elapsed.count()), static_cast<std::uint64_t>(from.validity.count()),
         from.argument_error.empty() ? 0U : 1U, from.masters().size()});
    add_error(to, from.result);
    for (const master_report& each : from.masters())
    {
        to.add({static_cast<std::uint64_t>(each.vote), static_cast<std::uint64_t>(each.elapsed.count())});
        add_error(to, each.reason);
    }
}

void add_error(trace& to, const error_code& error)
{
    to.add({category_number(error), value_number(error)});
}

} // namespace redlock::test
