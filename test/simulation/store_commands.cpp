// SPDX-License-Identifier: BSL-1.0
// The commands on keys, with the words of redis-server 7.0.
#include "store_commands.hpp"

#include "command_arguments.hpp"
#include "support/fake_replies.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace redlock::test
{

namespace
{

using entry = master_store::entry;
using type = master_store::type;
using reply = reply_value;

constexpr const char* wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr const char* not_an_integer = "ERR value is not an integer or out of range";

/// The error of a reply in wire format.
reply as_error(const std::string& bytes)
{
    return reply::error(bytes.substr(1, bytes.size() - 3));
}

reply set(master_store& keys, const command& words)
{
    const set_arguments asked{words};
    if (!asked.error.empty())
    {
        return as_error(asked.error);
    }
    const bool exists = keys.find(words[1]) != nullptr;
    if (exists ? asked.only_new : asked.only_existing)
    {
        return {};
    }
    keys.put(words[1], words[2], asked.at_that_time ? *asked.ttl - keys.whole_now() : asked.ttl);
    return reply::status("OK");
}

reply get(master_store& keys, const command& words)
{
    const entry* const found = keys.find(words[1]);
    if (found == nullptr)
    {
        return {};
    }
    return found->of == type::text ? reply::bulk(found->value) : reply::error(wrong_type);
}

reply remove(master_store& keys, const command& words)
{
    return reply::integer(std::count_if(
        words.begin() + 1, words.end(), [&](const std::string& key) { return keys.remove(key); }));
}

reply exists(master_store& keys, const command& words)
{
    return reply::integer(std::count_if(
        words.begin() + 1, words.end(), [&](const std::string& key) { return keys.find(key) != nullptr; }));
}

reply pexpire(master_store& keys, const command& words)
{
    const std::optional<std::int64_t> ttl = integer_in(words[2]);
    if (!ttl)
    {
        return reply::error(not_an_integer);
    }
    if (keys.find(words[1]) == nullptr)
    {
        return reply::integer(0);
    }
    if (*ttl <= 0)
    {
        keys.remove(words[1]);
    }
    else
    {
        keys.expire_in(words[1], std::chrono::milliseconds{*ttl});
    }
    return reply::integer(1);
}

reply pttl(master_store& keys, const command& words)
{
    const entry* const found = keys.find(words[1]);
    return reply::integer(found == nullptr ? -2 : found->expires_at ? keys.left(*found).count() : -1);
}

reply time(master_store& keys, const command&)
{
    const auto shown = std::chrono::floor<std::chrono::microseconds>(keys.now().time_since_epoch());
    reply both{reply::kind::array};
    both.items.push_back(reply::bulk(std::to_string(shown.count() / 1'000'000)));
    both.items.push_back(reply::bulk(std::to_string(shown.count() % 1'000'000)));
    return both;
}

/// ZADD key score member.
reply zadd(master_store& keys, const command& words)
{
    if (words.size() % 2 != 0)
    {
        return reply::error("ERR syntax error");
    }
    double score = 0;
    const char* const end = words[2].data() + words[2].size();
    const auto [stop, error] = std::from_chars(words[2].data(), end, score);
    if (words.size() != 4 || error != std::errc{} || stop != end)
    {
        return reply::error("ERR value is not a valid float");
    }
    sorted_set& members = keys.change(words[1], type::sorted_set).members;
    return reply::integer(members.put(words[3], score) ? 1 : 0);
}

reply zrem(master_store& keys, const command& words)
{
    std::int64_t count = 0;
    if (keys.find(words[1]) != nullptr)
    {
        sorted_set& members = keys.change(words[1], type::sorted_set).members;
        count = std::count_if(
            words.begin() + 2, words.end(), [&](const std::string& each) { return members.remove(each); });
        keys.remove_if_empty(words[1]);
    }
    return reply::integer(count);
}

/// ZRANGE key first last, from 0.
reply zrange(master_store& keys, const command& words)
{
    const std::optional<std::int64_t> first = integer_in(words[2]);
    const std::optional<std::int64_t> last = integer_in(words[3]);
    if (!first || !last)
    {
        return reply::error(not_an_integer);
    }
    reply some{reply::kind::array};
    if (const entry* const found = keys.find(words[1]))
    {
        const auto size = static_cast<std::int64_t>(found->members.size());
        const std::int64_t end = std::min(size, *last < 0 ? size + *last + 1 : *last + 1);
        for (std::int64_t at = *first < 0 ? std::max<std::int64_t>(0, size + *first) : *first; at < end; ++at)
        {
            some.items.push_back(reply::bulk(found->members.at(static_cast<std::size_t>(at))));
        }
    }
    return some;
}

reply zrank(master_store& keys, const command& words)
{
    const entry* const found = keys.find(words[1]);
    const std::optional<std::size_t> rank = found != nullptr ? found->members.rank(words[2]) : std::nullopt;
    return rank ? reply::integer(static_cast<std::int64_t>(*rank)) : reply{};
}

reply zscore(master_store& keys, const command& words)
{
    const entry* const found = keys.find(words[1]);
    const std::optional<double> score = found != nullptr ? found->members.score(words[2]) : std::nullopt;
    return score ? reply::bulk(fmt::format("{:.17g}", *score)) : reply{};
}

reply zcard(master_store& keys, const command& words)
{
    const entry* const found = keys.find(words[1]);
    return reply::integer(found != nullptr ? static_cast<std::int64_t>(found->members.size()) : 0);
}

/// HSET key field value...
reply hset(master_store& keys, const command& words)
{
    if (words.size() % 2 != 0)
    {
        return reply::error("ERR wrong number of arguments for 'hset' command");
    }
    std::int64_t fresh = 0;
    auto& fields = keys.change(words[1], type::hash).fields;
    for (std::size_t at = 2; at < words.size(); at += 2)
    {
        fresh += fields.insert_or_assign(words[at], words[at + 1]).second ? 1 : 0;
    }
    return reply::integer(fresh);
}

reply hget_from(const entry* found, const std::string& field)
{
    if (found == nullptr || !found->fields.contains(field))
    {
        return {};
    }
    return reply::bulk(found->fields.at(field));
}

reply hget(master_store& keys, const command& words)
{
    return hget_from(keys.find(words[1]), words[2]);
}

reply hmget(master_store& keys, const command& words)
{
    reply all{reply::kind::array};
    for (std::size_t at = 2; at < words.size(); ++at)
    {
        all.items.push_back(hget_from(keys.find(words[1]), words[at]));
    }
    return all;
}

reply hvals(master_store& keys, const command& words)
{
    reply all{reply::kind::array};
    if (const entry* const found = keys.find(words[1]))
    {
        for (const auto& [field, value] : found->fields)
        {
            all.items.push_back(reply::bulk(value));
        }
    }
    return all;
}

reply hdel(master_store& keys, const command& words)
{
    std::int64_t count = 0;
    if (keys.find(words[1]) != nullptr)
    {
        auto& fields = keys.change(words[1], type::hash).fields;
        for (std::size_t at = 2; at < words.size(); ++at)
        {
            count += static_cast<std::int64_t>(fields.erase(words[at]));
        }
        keys.remove_if_empty(words[1]);
    }
    return reply::integer(count);
}

struct store_command
{
    std::function<reply(master_store&, const command&)> run;
    std::size_t least; // Words.
    std::size_t most;
    std::optional<type> on; // The type of its key; empty for any.
    bool writes;
};

constexpr std::size_t unlimited = 1000;

const std::map<std::string, store_command, std::less<>>& store_commands()
{
    static const std::map<std::string, store_command, std::less<>> all{
        {"SET", {set, 3, unlimited, {}, true}},
        {"GET", {get, 2, 2, type::text, false}},
        {"DEL", {remove, 2, unlimited, {}, true}},
        {"EXISTS", {exists, 2, unlimited, {}, false}},
        {"PEXPIRE", {pexpire, 3, 3, {}, true}},
        {"PTTL", {pttl, 2, 2, {}, false}},
        {"TIME", {time, 1, 1, {}, false}},
        {"ZADD", {zadd, 4, unlimited, type::sorted_set, true}},
        {"ZREM", {zrem, 3, unlimited, type::sorted_set, true}},
        {"ZRANGE", {zrange, 4, 4, type::sorted_set, false}},
        {"ZRANK", {zrank, 3, 3, type::sorted_set, false}},
        {"ZSCORE", {zscore, 3, 3, type::sorted_set, false}},
        {"ZCARD", {zcard, 2, 2, type::sorted_set, false}},
        {"HSET", {hset, 4, unlimited, type::hash, true}},
        {"HGET", {hget, 3, 3, type::hash, false}},
        {"HMGET", {hmget, 3, unlimited, type::hash, false}},
        {"HVALS", {hvals, 2, 2, type::hash, false}},
        {"HDEL", {hdel, 3, unlimited, type::hash, true}}};
    return all;
}

} // namespace

bool is_write(std::string_view name)
{
    const auto found = store_commands().find(name);
    return found != store_commands().end() && found->second.writes;
}

std::optional<reply_value> run_on(master_store& keys, const command& words)
{
    const auto found = store_commands().find(name_of(words));
    if (found == store_commands().end())
    {
        return std::nullopt;
    }
    const store_command& what = found->second;
    if (words.size() < what.least || words.size() > what.most)
    {
        return reply::error("ERR wrong number of arguments for '" + found->first + "' command");
    }
    if (what.on)
    {
        const entry* const held = keys.find(words[1]);
        if (held != nullptr && held->of != *what.on)
        {
            return reply::error(wrong_type);
        }
    }
    return what.run(keys, words);
}

} // namespace redlock::test
