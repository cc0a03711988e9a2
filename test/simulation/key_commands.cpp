// SPDX-License-Identifier: BSL-1.0
// The order of the checks, and their texts, are those of redis-server 7.0.
#include "key_commands.hpp"

#include "command_arguments.hpp"
#include "support/fake_replies.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

constexpr const char* wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

struct execution
{
    master_store& keys;
    const command& words;
    int protocol;

    const std::string& key() const { return words[1]; }
    std::string null() const { return null_for(*this); }
    std::string bulk_or_null(const std::string* text) const { return text != nullptr ? bulk(*text) : null(); }
};

/// Calls `then` with the value of the key; null if it doesn't exist.
template <class Type, class Function>
std::string with(const execution& of, Function then)
{
    const master_store::entry* const found = of.keys.find(of.key());
    const Type* const value = found != nullptr ? found->as<Type>() : nullptr;
    return found != nullptr && value == nullptr ? wrong_type : then(value);
}

std::string set(const execution& of)
{
    const set_arguments asked{of.words};
    if (!asked.error.empty())
    {
        return asked.error;
    }
    const bool exists = of.keys.find(of.key()) != nullptr;
    if (exists ? asked.only_new : asked.only_existing)
    {
        return of.null();
    }
    of.keys.put(of.key(), of.words[2], asked.at_that_time ? *asked.ttl - of.keys.whole_now() : asked.ttl);
    return ok_reply;
}

std::string get(const execution& of)
{
    return with<std::string>(of, [&](const std::string* text) { return of.bulk_or_null(text); });
}

/// DEL and EXISTS.
template <class Function>
std::string count_keys(const execution& of, Function counts)
{
    return number(std::count_if(of.words.begin() + 1, of.words.end(), counts));
}

std::string del(const execution& of)
{
    return count_keys(of, [&](const std::string& key) { return of.keys.remove(key); });
}

std::string exists(const execution& of)
{
    return count_keys(of, [&](const std::string& key) { return of.keys.find(key) != nullptr; });
}

std::string pttl(const execution& of)
{
    const master_store::entry* const found = of.keys.find(of.key());
    return number(found == nullptr ? -2 : found->expires_at ? of.keys.left(*found).count() : -1);
}

std::string pexpire(const execution& of)
{
    const std::optional<std::int64_t> ttl = integer_in(of.words[2]);
    if (of.words.size() > 3)
    {
        return fmt::format("-ERR Unsupported option {}\r\n", of.words[3]);
    }
    if (!ttl)
    {
        return no_integer;
    }
    if (*ttl > max_simulated_ttl.count())
    {
        return "-ERR invalid expire time in 'pexpire' command\r\n";
    }
    if (of.keys.find(of.key()) == nullptr)
    {
        return number(0);
    }
    if (*ttl <= 0)
    {
        of.keys.remove(of.key());
    }
    else
    {
        of.keys.expire_in(of.key(), std::chrono::milliseconds{*ttl});
    }
    return number(1);
}

std::optional<double> score_in(std::string_view word)
{
    double score = 0;
    const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), score);
    const bool is_one = error == std::errc{} && last == word.data() + word.size() && !std::isnan(score);
    return is_one ? std::optional{score} : std::nullopt;
}

/// ZADD key [NX] score member... Other options are not simulated: they are refused as wrong.
std::string zadd(const execution& of)
{
    const bool only_new = in_capitals(of.words[2]) == "NX";
    const std::size_t first = only_new ? 3 : 2;
    if ((of.words.size() - first) % 2 != 0 || of.words.size() == first)
    {
        return syntax_error_reply;
    }
    std::vector<double> scores;
    for (std::size_t at = first; at < of.words.size(); at += 2)
    {
        const std::optional<double> score = score_in(of.words[at]);
        if (!score)
        {
            return "-ERR value is not a valid float\r\n";
        }
        scores.push_back(*score);
    }
    const auto add = [&](const sorted_set*)
    {
        sorted_set& members = of.keys.edit<sorted_set>(of.key());
        const std::size_t before = members.size();
        for (std::size_t each = 0; each < scores.size(); ++each)
        {
            const std::string& member = of.words[first + 2 * each + 1];
            if (!only_new || !members.rank(member))
            {
                members.set(member, scores[each]);
            }
        }
        return number(static_cast<std::int64_t>(members.size() - before));
    };
    return with<sorted_set>(of, add);
}

/// ZREM and HDEL: removes each of the other words, and the key with the last of them.
template <class Type, class Function>
std::string remove_all(const execution& of, Function removes)
{
    const auto remove = [&](const Type* value)
    {
        if (value == nullptr)
        {
            return number(0);
        }
        Type& changed = of.keys.edit<Type>(of.key());
        const auto removed = std::count_if(
            of.words.begin() + 2, of.words.end(), [&](const auto& each) { return removes(changed, each); });
        if (changed.size() == 0)
        {
            of.keys.remove(of.key());
        }
        return number(removed);
    };
    return with<Type>(of, remove);
}

std::string zrem(const execution& of)
{
    return remove_all<sorted_set>(
        of, [](sorted_set& from, const std::string& member) { return from.remove(member); });
}

std::string hdel(const execution& of)
{
    return remove_all<hash>(of, [](hash& from, const std::string& field) { return from.erase(field) > 0; });
}

/// ZRANGE key first last. Its options are not simulated: they are refused as wrong.
std::string zrange(const execution& of)
{
    const std::optional<std::int64_t> first = integer_in(of.words[2]);
    const std::optional<std::int64_t> last = integer_in(of.words[3]);
    if (of.words.size() > 4)
    {
        return syntax_error_reply;
    }
    if (!first || !last)
    {
        return no_integer;
    }
    const auto list = [&](const sorted_set* members)
    {
        const auto size = static_cast<std::int64_t>(members != nullptr ? members->size() : 0);
        const auto from_start = [size](std::int64_t at) { return at < 0 ? at + size : at; };
        std::string elements;
        std::int64_t count = 0;
        for (std::int64_t at = std::max<std::int64_t>(from_start(*first), 0);
             at <= std::min(from_start(*last), size - 1); ++at, ++count)
        {
            elements += bulk(members->at(static_cast<std::size_t>(at)));
        }
        return fmt::format("*{}\r\n{}", count, elements);
    };
    return with<sorted_set>(of, list);
}

std::string zrank(const execution& of)
{
    const auto find = [&](const sorted_set* members)
    {
        const auto rank = members != nullptr ? members->rank(of.words[2]) : std::nullopt;
        return rank ? number(static_cast<std::int64_t>(*rank)) : of.null();
    };
    return with<sorted_set>(of, find);
}

std::string zscore(const execution& of)
{
    const auto find = [&](const sorted_set* members)
    {
        const auto score = members != nullptr ? members->score(of.words[2]) : std::nullopt;
        const std::string text = score ? fmt::format("{:.17g}", *score) : "";
        return !score ? of.null() : of.protocol == 3 ? "," + text + "\r\n" : bulk(text);
    };
    return with<sorted_set>(of, find);
}

/// ZCARD and HLEN.
template <class Type>
std::string size(const execution& of)
{
    return with<Type>(
        of, [](const Type* value)
        { return number(value != nullptr ? static_cast<std::int64_t>(value->size()) : 0); });
}

std::string hset(const execution& of)
{
    if (of.words.size() % 2 != 0)
    {
        return "-ERR wrong number of arguments for 'hset' command\r\n";
    }
    const auto store = [&](const hash*)
    {
        hash& fields = of.keys.edit<hash>(of.key());
        const std::size_t before = fields.size();
        for (std::size_t at = 2; at < of.words.size(); at += 2)
        {
            fields.insert_or_assign(of.words[at], of.words[at + 1]);
        }
        return number(static_cast<std::int64_t>(fields.size() - before));
    };
    return with<hash>(of, store);
}

const std::string* find_field(const hash* fields, const std::string& name)
{
    const auto found = fields != nullptr ? fields->find(name) : hash::const_iterator{};
    return fields != nullptr && found != fields->end() ? &found->second : nullptr;
}

std::string hget(const execution& of)
{
    return with<hash>(
        of, [&](const hash* fields) { return of.bulk_or_null(find_field(fields, of.words[2])); });
}

std::string hmget(const execution& of)
{
    const auto list = [&](const hash* fields)
    {
        std::string elements;
        for (std::size_t at = 2; at < of.words.size(); ++at)
        {
            elements += of.bulk_or_null(find_field(fields, of.words[at]));
        }
        return fmt::format("*{}\r\n{}", of.words.size() - 2, elements);
    };
    return with<hash>(of, list);
}

} // namespace

std::optional<std::string> run_key_command(master_store& keys, const command& words, int protocol)
{
    static const std::map<std::string, std::string (*)(const execution&), std::less<>> all{
        {"DEL", del},
        {"EXISTS", exists},
        {"GET", get},
        {"HDEL", hdel},
        {"HGET", hget},
        {"HLEN", size<hash>},
        {"HMGET", hmget},
        {"HSET", hset},
        {"PEXPIRE", pexpire},
        {"PTTL", pttl},
        {"SET", set},
        {"ZADD", zadd},
        {"ZCARD", size<sorted_set>},
        {"ZRANGE", zrange},
        {"ZRANK", zrank},
        {"ZREM", zrem},
        {"ZSCORE", zscore}};
    const auto found = all.find(name_of(words));
    return found != all.end() ? std::optional{found->second({keys, words, protocol})} : std::nullopt;
}

} // namespace redlock::test
