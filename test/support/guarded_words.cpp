// SPDX-License-Identifier: BSL-1.0
// The commands of guarded mode, translated to those of plain mode that they stand for.
#include "guarded_words.hpp"

#include "fake_replies.hpp"

#include <cstddef>

namespace redlock::test
{

namespace
{

// Words of a script: its command, its text or digest, the number of its keys, the keys, the arguments.
constexpr std::size_t key_count = 2;
constexpr std::size_t first_key = 3;

/// Returns the integer that a reply, or the rest of one, begins with: ":<number>\r\n".
std::optional<std::int64_t> integer_at(std::string_view reply)
{
    const std::size_t end = reply.find('\r');
    return reply.starts_with(':') && end != std::string_view::npos ? integer_in(reply.substr(1, end - 1))
                                                                   : std::nullopt;
}

/// Returns the translation of a negative answer; empty if it is none.
std::optional<std::string> refusal_in(std::string_view what, std::string_view reply)
{
    const std::optional<std::int64_t> answer = integer_at(reply);
    if (!answer || *answer >= 0)
    {
        return std::nullopt;
    }
    const std::string_view why = what == "extend" ? "group" : *answer == -3 ? "clock" : "incarnation";
    return std::string{no_vote}.append(why).append("\r\n");
}

/// Removes all keys but the first.
command with_one_key(const command& words, std::size_t keys)
{
    command less{words.begin(), words.begin() + first_key + 1};
    less[key_count] = "1";
    less.insert(less.end(), words.begin() + static_cast<std::ptrdiff_t>(first_key + keys), words.end());
    return less;
}

/// SET key owner NX PX ttl.
plain_exchange as_set(const command& one_key, const std::string& reply)
{
    plain_exchange plain{"SET", {"SET", one_key[3], one_key[4], "NX", "PX", one_key[5]}, reply, {}};
    const std::optional<std::int64_t> counter = integer_at(reply);
    if (counter && *counter > 0)
    {
        plain.reply = ok_reply;
        plain.counter = static_cast<std::uint64_t>(*counter);
    }
    else if (counter)
    {
        plain.reply = denied_key;
    }
    return plain;
}

/// A grant is answered by the number of waiting clients and the counter, in place of the former alone.
plain_exchange as_ask(command one_key, const std::string& reply)
{
    constexpr std::string_view grant = "*2\r\n";
    plain_exchange plain{"ask", std::move(one_key), reply, {}};
    if (reply.starts_with(grant))
    {
        const std::size_t end = reply.find('\n', grant.size());
        plain.reply = reply.substr(grant.size(), end + 1 - grant.size());
        const std::optional<std::int64_t> counter = integer_at(std::string_view{reply}.substr(end + 1));
        plain.counter = static_cast<std::uint64_t>(counter.value_or(0));
    }
    return plain;
}

} // namespace

std::optional<plain_exchange>
in_plain_mode(const std::string& what, const command& words, const std::string& reply)
{
    const bool has_arguments = words.size() > first_key + 2;
    const auto keys = has_arguments ? integer_in<std::size_t>(words[key_count]) : std::nullopt;
    const bool is_guarded = keys && *keys > 1 && words.size() > first_key + *keys + 1 &&
                            (what == "acquire" || what == "ask" || what == "extend");
    if (!is_guarded)
    {
        return std::nullopt;
    }
    command one_key = with_one_key(words, *keys);
    plain_exchange plain = what == "acquire" ? as_set(one_key, reply)
                           : what == "ask"   ? as_ask(std::move(one_key), reply)
                                             : plain_exchange{what, std::move(one_key), reply, {}};
    if (auto refused = refusal_in(what, reply))
    {
        plain.reply = std::move(*refused);
    }
    return plain;
}

std::optional<raise_words> read_raise(const std::string& what, const command& words)
{
    constexpr std::size_t count = 10;
    if (what != "raise" || words.size() != count)
    {
        return std::nullopt;
    }
    return raise_words{words[3], words[6], words[8], integer_in<std::uint64_t>(words[9]).value_or(0)};
}

std::optional<std::string> failed_raise(const std::string& reply)
{
    if (reply.starts_with('-'))
    {
        return reply;
    }
    if (auto refused = refusal_in("raise", reply))
    {
        return refused;
    }
    return integer_at(reply) == 0 ? std::optional{std::string{no_vote}.append("key\r\n")} : std::nullopt;
}

} // namespace redlock::test
