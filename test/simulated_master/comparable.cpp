// SPDX-License-Identifier: BSL-1.0
// Replies are taken as text: a wrong one must not become a right one by being understood.
#include "comparable.hpp"

#include "net/guard_scripts.hpp"
#include "net/queue_scripts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <regex>

namespace redlock::test
{

namespace
{

/// "1763733297" and "360000" are two times.
std::string without_numbers(const std::string& reply)
{
    static const std::regex number{"[0-9]+"};
    return std::regex_replace(reply, number, "#");
}

/// Of a bulk or verbatim string: what kind it is, and the lines that the simulation knows.
std::string with_known_lines(const std::string& reply)
{
    static constexpr std::array<std::string_view, 9> known{
        "# Server", "# Memory",          "# Replication", "redis_version:", "redis_mode:",
        "run_id:",  "maxmemory_policy:", "role:",         "master_replid:"};
    std::string kept = reply.substr(0, 1);
    for (std::size_t at = 0; at < reply.size();)
    {
        const std::size_t end = std::min(reply.find("\r\n", at), reply.size());
        std::string_view line = std::string_view{reply}.substr(at, end - at);
        line.remove_prefix(line.starts_with("txt:") ? 4 : 0);
        if (std::any_of(
                known.begin(), known.end(), [&](std::string_view each) { return line.starts_with(each); }))
        {
            kept += std::string{line} + "\r\n";
        }
        at = end + 2;
    }
    return kept;
}

std::string with_rounded_time_to_live(const std::string& reply)
{
    constexpr std::int64_t step = 100'000;
    const std::size_t begin = reply.rfind(':') + 1;
    std::int64_t left = 0;
    std::from_chars(reply.data() + begin, reply.data() + reply.size(), left);
    return left > 0 ? reply.substr(0, begin) + std::to_string((left + step - 1) / step * step) + "\r\n"
                    : reply;
}

/// The second of three integers is the time to live of the key.
std::string with_rounded_refusal(const std::string& reply)
{
    const std::size_t end = reply.rfind(':');
    return reply.starts_with("*3\r\n:") ? with_rounded_time_to_live(reply.substr(0, end)) + reply.substr(end)
                                        : reply;
}

/// Removes the digest of the script that an error comes from, as Valkey 9 doesn't say it.
std::string without_digest(std::string error)
{
    constexpr std::string_view after = " script: ";
    constexpr std::string_view before = "on @user_script:";
    const std::size_t begin = error.find(after);
    const std::size_t end = error.find(before);
    if (begin < end && end != std::string::npos)
    {
        error.erase(begin + after.size(), end - begin - after.size());
    }
    return error;
}

} // namespace

std::string comparable(const command& words, const std::string& reply)
{
    if (reply.starts_with("-NOAUTH HELLO"))
    {
        return "-NOAUTH"; // Advice follows, which Redis 8 words in another way.
    }
    if (reply.starts_with("-NOSCRIPT"))
    {
        return "-NOSCRIPT"; // Without the advice, as Valkey says it.
    }
    constexpr std::string_view no_arguments = ", with args beginning with: \r\n";
    if (reply.starts_with("-ERR unknown command") && reply.ends_with(no_arguments))
    {
        return reply.substr(0, reply.size() - no_arguments.size()) + "\r\n"; // As Redis 8.6 says it.
    }
    constexpr std::string_view lua = "-ERR Lua redis lib command arguments must be";
    if (reply.starts_with(lua))
    {
        return "-ERR Command arguments must be" +
               without_digest(reply.substr(lua.size())); // As Valkey says it.
    }
    if (reply.starts_with('-'))
    {
        return without_digest(reply);
    }
    const std::string name = name_of(words);
    if (name == "TIME")
    {
        return without_numbers(reply);
    }
    if (name == "HELLO")
    {
        return reply.substr(0, reply.find("modules")); // The last of it: Redis 8 brings some.
    }
    if (name == "INFO")
    {
        return with_known_lines(reply);
    }
    const bool is_script = (name == "EVAL" || name == "EVALSHA") && words.size() > 1;
    const auto calls = [&](const net::script& which)
    { return is_script && (words[1] == which.text || words[1] == which.sha1); };
    if (calls(net::ask_script) || calls(net::guarded_ask_script))
    {
        return with_rounded_refusal(reply);
    }
    if (is_script && words[1] == net::inspect_script)
    {
        return with_rounded_time_to_live(reply);
    }
    return reply;
}

std::string printable(std::string_view text)
{
    std::string out;
    for (const char each : text)
    {
        out += each == '\r' ? "\\r" : each == '\n' ? "\\n" : std::string{each};
    }
    return out;
}

std::string printable(const command& words)
{
    std::string out;
    for (const std::string& each : words)
    {
        out += (out.empty() ? "'" : " '") + printable(std::string_view{each}) + "'";
    }
    return out;
}

} // namespace redlock::test
