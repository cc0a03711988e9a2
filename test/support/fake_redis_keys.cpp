// SPDX-License-Identifier: BSL-1.0
// The honest master's keys. Scripts aren't run; their effect is derived from their text.
#include "fake_redis.hpp"

#include "fake_replies.hpp"
#include "sha1.hpp"

#include <algorithm>
#include <utility>

namespace redlock::test
{
namespace
{

constexpr std::size_t max_keys = 100'000;

} // namespace

std::optional<std::string> fake_redis::value(const std::string& key) const
{
    const std::lock_guard lock{mutex_};
    const auto found = keys_.find(key);
    const bool there =
        found != keys_.end() && (!found->second.expires_at || *found->second.expires_at > clock::now());
    return there ? std::optional{found->second.value} : std::nullopt;
}

void fake_redis::set(const std::string& key, const std::string& value)
{
    const std::lock_guard lock{mutex_};
    keys_[key] = {.value = value};
}

void fake_redis::remove(const std::string& key)
{
    const std::lock_guard lock{mutex_};
    keys_.erase(key);
}

fake_redis::entry* fake_redis::find(const std::string& key)
{
    const auto found = keys_.find(key);
    if (found == keys_.end())
    {
        return nullptr;
    }
    if (found->second.expires_at && *found->second.expires_at <= clock::now())
    {
        keys_.erase(found);
        return nullptr;
    }
    return &found->second;
}

/// SET key value [NX] [PX milliseconds].
std::string fake_redis::set_command(const client& who, const command& words)
{
    entry fresh{.value = words[2]};
    bool only_new = false;
    for (std::size_t word = 3; word < words.size(); ++word)
    {
        const std::string option = in_capitals(words[word]);
        if (option == "NX")
        {
            only_new = true;
        }
        else if (option == "PX" && word + 1 < words.size())
        {
            const std::int64_t milliseconds = integer_in(words[++word]).value_or(0);
            if (milliseconds <= 0)
            {
                return "-ERR invalid expire time in 'set' command\r\n";
            }
            fresh.expires_at = clock::now() + std::chrono::milliseconds{milliseconds};
        }
        else
        {
            return syntax_error_reply;
        }
    }
    if (only_new && find(words[1]) != nullptr)
    {
        return null_for(who);
    }
    if (keys_.size() >= max_keys)
    {
        return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    }
    keys_[words[1]] = std::move(fresh);
    return ok_reply;
}

/// EVALSHA sha1 1 key owner [ttl], and EVAL. A script that contains PEXPIRE extends, one with DEL or UNLINK releases;
/// both require the owner, and never move the expiry to an earlier time. The scripts of the wait queue are told apart by
/// the number of their arguments. A script without keys answers an empty array, and any other one 1.
std::string fake_redis::eval(const command& words, bool by_name)
{
    std::string script = words[1];
    if (by_name)
    {
        const auto found = scripts_.find(script);
        if (found == scripts_.end())
        {
            return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
        }
        script = found->second;
    }
    else if (scripts_.size() < max_scripts)
    {
        scripts_[sha1_hex(script)] = script;
    }
    if (words[2] == "0") // Tries commands: none is refused.
    {
        return "*0\r\n";
    }
    script = in_capitals(script);
    const bool of_queue = script.find("REDLOCK-QUEUE:") != std::string::npos;
    if (of_queue && words.size() == 10)
    {
        return ask(words);
    }
    const bool extends = !of_queue && script.find("PEXPIRE") != std::string::npos;
    const bool releases =
        script.find("DEL") != std::string::npos || script.find("UNLINK") != std::string::npos;
    if ((!extends && !releases) || words.size() < 5 || words[2] != "1")
    {
        return number(1);
    }
    entry* const held = find(words[3]);
    if (held == nullptr || held->value != words[4])
    {
        return number(0);
    }
    if (!extends)
    {
        keys_.erase(words[3]);
    }
    else if (words.size() > 5 && held->expires_at)
    {
        const std::chrono::milliseconds ttl{integer_in(words[5]).value_or(0)};
        held->expires_at = std::max(*held->expires_at, clock::now() + ttl);
    }
    return number(1);
}

/// The question of a waiting client. There is no queue: the first to ask gets the lock, the others are told that they
/// are first in line.
std::string fake_redis::ask(const command& words)
{
    const entry* const held = find(words[3]);
    if (held != nullptr && held->value != words[5])
    {
        const std::int64_t left =
            held->expires_at
                ? std::chrono::ceil<std::chrono::milliseconds>(*held->expires_at - clock::now()).count()
                : -1;
        return "*3\r\n" + number(0) + number(left) + number(1);
    }
    const std::chrono::milliseconds ttl{integer_in(words[6]).value_or(0)};
    keys_[words[3]] = {.value = words[5], .expires_at = clock::now() + ttl};
    return number(0);
}

/// GET, PTTL and DEL of one key.
std::string fake_redis::get(const client& who, const command& words)
{
    const std::string name = name_of(words);
    const entry* const held = find(words[1]);
    if (name == "GET")
    {
        return held == nullptr ? null_for(who) : bulk(held->value);
    }
    if (name == "DEL")
    {
        return number(static_cast<std::int64_t>(keys_.erase(words[1])));
    }
    if (held == nullptr || !held->expires_at)
    {
        return number(held == nullptr ? -2 : -1);
    }
    return number(std::chrono::ceil<std::chrono::milliseconds>(*held->expires_at - clock::now()).count());
}

} // namespace redlock::test
