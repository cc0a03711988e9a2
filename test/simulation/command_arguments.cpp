// SPDX-License-Identifier: BSL-1.0
// The order of the checks, and their words, are those of redis-server 7.0.
#include "command_arguments.hpp"

#include "support/fake_replies.hpp"

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>

namespace redlock::test
{

namespace
{

constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
constexpr std::size_t max_shown_size = 128; // Of what is unknown, and of its arguments together.

/// How many words a command has, its name included.
struct word_count
{
    std::size_t least;
    std::size_t most;
};

const std::map<std::string, word_count> known_commands{
    {"AUTH", {2, any}},        {"CLIENT", {2, any}}, {"CLIENT ID", {2, 2}},   {"CLIENT SETNAME", {3, 3}},
    {"CLIENT KILL", {3, any}}, {"EVAL", {3, any}},   {"EVALSHA", {3, any}},   {"HELLO", {1, any}},
    {"INFO", {1, any}},        {"SCRIPT", {2, any}}, {"SCRIPT LOAD", {3, 3}}, {"SCRIPT FLUSH", {2, any}},
    {"SELECT", {2, 2}},        {"SET", {3, any}},    {"TIME", {1, 1}},        {"SUBSCRIBE", {2, any}},
    {"PUBLISH", {3, 3}},       {"GET", {2, 2}},      {"EXISTS", {2, any}},    {"DEL", {2, any}},
    {"HGET", {3, 3}},          {"HSET", {4, any}},   {"HDEL", {3, any}},      {"FLUSHALL", {1, any}},
    {"SWAPDB", {3, 3}}};

/// As much of a word as an error repeats: up to a zero byte, as C has it.
std::string_view shown(std::string_view word, std::size_t most = max_shown_size)
{
    return word.substr(0, std::min(word.find('\0'), most));
}

/// On one line, whatever was repeated in it.
std::string error_line(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char each) { return each == '\r' || each == '\n'; }, ' ');
    return "-ERR " + text + "\r\n";
}

/// Of "CLIENT ID" as of "SET".
std::optional<std::string>
wrong_number(const std::pair<const std::string, word_count>& known, std::size_t words)
{
    const auto& [name, count] = known;
    if (words >= count.least && words <= count.most)
    {
        return std::nullopt;
    }
    const std::string whole = boost::replace_all_copy(boost::to_lower_copy(name), " ", "|");
    return error_line(fmt::format("wrong number of arguments for '{}' command", whole));
}

} // namespace

std::string unknown_command(const command& words)
{
    std::string arguments;
    for (std::size_t at = 1; at < words.size() && arguments.size() < max_shown_size; ++at)
    {
        arguments += fmt::format("'{}' ", shown(words[at], max_shown_size - arguments.size()));
    }
    return error_line(
        fmt::format("unknown command '{}', with args beginning with: {}", shown(words.front()), arguments));
}

std::optional<std::string> refusal_of(const command& words)
{
    const std::string name = name_of(words);
    const auto found = known_commands.find(name);
    if (found == known_commands.end())
    {
        return unknown_command(words);
    }
    const bool has_parts = name == "CLIENT" || name == "SCRIPT";
    if (!has_parts || words.size() == 1)
    {
        return wrong_number(*found, words.size());
    }
    const auto whole = known_commands.find(name + " " + in_capitals(words[1]));
    if (whole == known_commands.end())
    {
        return error_line(fmt::format("unknown subcommand '{}'. Try {} HELP.", shown(words[1]), name));
    }
    return wrong_number(*whole, words.size());
}

std::optional<std::string> refusal_of_name(std::string_view name)
{
    const bool plain =
        std::all_of(name.begin(), name.end(), [](char each) { return each >= '!' && each <= '~'; });
    return plain ? std::nullopt
                 : std::optional<std::string>{
                       "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"};
}

hello_arguments::hello_arguments(const command& words)
{
    if (words.size() > 1)
    {
        const std::optional<std::int64_t> version = integer_in(words[1]);
        if (!version || *version < 2 || *version > 3)
        {
            error = version ? "-NOPROTO unsupported protocol version\r\n"
                            : "-ERR Protocol version is not an integer or out of range\r\n";
            return;
        }
        protocol = static_cast<int>(*version);
    }
    for (std::size_t at = 2; at < words.size(); ++at)
    {
        const std::string option = in_capitals(words[at]);
        const std::size_t left = words.size() - 1 - at;
        if (option == "AUTH" && left >= 2)
        {
            user = words[++at];
            password = words[++at];
        }
        else if (option == "SETNAME" && left >= 1)
        {
            error = refusal_of_name(words[++at]).value_or("");
        }
        else
        {
            error = error_line(
                fmt::format("Syntax error in HELLO option '{}'", shown(words[at], words[at].size())));
        }
        if (!error.empty())
        {
            return;
        }
    }
}

set_arguments::set_arguments(const command& words)
{
    std::optional<std::string> expiry;
    for (std::size_t at = 3; at < words.size(); ++at)
    {
        const std::string option = in_capitals(words[at]);
        if (option == "NX" && !only_existing)
        {
            only_new = true;
        }
        else if (option == "XX" && !only_new)
        {
            only_existing = true;
        }
        else if ((option == "PX" || option == "PXAT") && at + 1 < words.size())
        {
            expiry = words[++at];
            at_that_time = option == "PXAT";
        }
        else
        {
            error = syntax_error_reply;
            return;
        }
    }
    if (!expiry)
    {
        return;
    }
    const std::optional<std::int64_t> number = integer_in(*expiry);
    // Of what lies between this and the end of numbers, the simulation's clocks know nothing.
    constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 365 * 100};
    if (!number)
    {
        error = no_integer;
    }
    else if (*number <= 0 || *number > longest.count())
    {
        error = "-ERR invalid expire time in 'set' command\r\n";
    }
    ttl = std::chrono::milliseconds{number.value_or(0)};
}

script_arguments::script_arguments(const command& words)
{
    const std::optional<std::int64_t> count = integer_in(words[2]);
    if (!count)
    {
        error = no_integer;
        return;
    }
    if (*count > static_cast<std::int64_t>(words.size()) - 3)
    {
        error = "-ERR Number of keys can't be greater than number of args\r\n";
        return;
    }
    if (*count < 0)
    {
        error = "-ERR Number of keys can't be negative\r\n";
        return;
    }
    keys.assign(words.begin() + 3, words.begin() + 3 + *count);
    arguments.assign(words.begin() + 3 + *count, words.end());
}

kill_arguments::kill_arguments(const command& words)
{
    if (words.size() == 3)
    {
        error = "-ERR No such client\r\n"; // The old form, with an address: no client has one here.
        return;
    }
    for (std::size_t at = 2; at < words.size(); at += 2)
    {
        if (in_capitals(words[at]) != "ID" || at + 1 == words.size())
        {
            error = syntax_error_reply;
            return;
        }
        id = integer_in(words[at + 1]).value_or(0);
        if (id <= 0)
        {
            error = "-ERR client-id should be greater than 0\r\n";
            return;
        }
    }
}

} // namespace redlock::test
