// SPDX-License-Identifier: BSL-1.0
// The handshake, and the information on a well-behaved master; its keys are in fake_redis_keys.cpp.
#include "fake_redis.hpp"

#include "fake_replies.hpp"
#include "sha1.hpp"

#include <random>
#include <utility>

#include <fmt/format.h>

namespace redlock::test
{
namespace
{

std::string random_run_id()
{
    std::random_device entropy;
    std::string text;
    for (int word = 0; word < 5; ++word)
    {
        text += fmt::format("{:08x}", entropy() & 0xffffffffU);
    }
    return text;
}

std::string unknown(const command& words)
{
    return fmt::format("-ERR unknown command '{}'\r\n", words.empty() ? "" : words.front());
}

} // namespace

fake_redis::fake_redis(honest_options options) : options_{std::move(options)}
{
    if (options_.run_id.empty())
    {
        options_.run_id = random_run_id();
    }
}

fake_redis::client fake_redis::enter(session& where)
{
    const std::lock_guard lock{mutex_};
    client who;
    who.id = ++last_id_;
    who.authenticated = options_.password.empty();
    clients_[who.id] = &where;
    return who;
}

void fake_redis::leave(const client& who)
{
    const std::lock_guard lock{mutex_};
    clients_.erase(who.id);
}

void fake_redis::forget_scripts()
{
    const std::lock_guard lock{mutex_};
    scripts_.clear();
}

std::string fake_redis::answer_to(client& who, const command& words)
{
    const std::lock_guard lock{mutex_};
    if (!clients_.contains(who.id))
    {
        // CLIENT KILL has ended this connection: its earlier commands must not run any more.
        return {};
    }
    const std::string name = name_of(words);
    if (name == "HELLO" && options_.knows_hello)
    {
        return hello(who, words);
    }
    if (name == "AUTH" && (words.size() == 2 || words.size() == 3))
    {
        return auth(who, words.size() == 3 ? words[1] : "default", words.back());
    }
    if (name == "QUIT")
    {
        return ok_reply;
    }
    return who.authenticated ? data_command(who, words) : "-NOAUTH Authentication required.\r\n";
}

/// The commands for authenticated clients.
std::string fake_redis::data_command(client& who, const command& words)
{
    const std::string name = name_of(words);
    if (name == "PING")
    {
        return "+PONG\r\n";
    }
    if (name == "TIME")
    {
        return time();
    }
    if (name == "SELECT" && words.size() == 2)
    {
        who.database = static_cast<int>(integer_in(words[1]).value_or(0));
        return ok_reply;
    }
    if (name == "CLIENT" && words.size() >= 2)
    {
        return client_command(who, words);
    }
    if (name == "INFO")
    {
        const std::string text = info();
        return who.protocol == 3 ? fmt::format("={}\r\ntxt:{}\r\n", text.size() + 4, text) : bulk(text);
    }
    if (name == "ROLE")
    {
        return role();
    }
    if (name == "CONFIG")
    {
        return config(who, words);
    }
    if (name == "SCRIPT")
    {
        return script_command(words);
    }
    if (name == "SET" && words.size() >= 3)
    {
        return set_command(who, words);
    }
    if ((name == "EVALSHA" || name == "EVAL") && words.size() >= 3)
    {
        return eval(words, name == "EVALSHA");
    }
    if (name == "SUBSCRIBE" && words.size() == 2 && who.protocol == 3)
    {
        who.channel = words[1];
        return ">3\r\n" + bulk("subscribe") + bulk(who.channel) + number(1);
    }
    if (name == "PUBLISH" && words.size() == 3)
    {
        // Only to itself, as clients do to see whether they receive messages.
        const bool receives = who.channel == words[1];
        return receives ? ">3\r\n" + bulk("message") + bulk(words[1]) + bulk(words[2]) + number(1)
                        : number(0);
    }
    if ((name == "GET" || name == "PTTL" || name == "DEL") && words.size() == 2)
    {
        return get(who, words);
    }
    return unknown(words);
}

/// HELLO [version [AUTH user password] [SETNAME name]].
std::string fake_redis::hello(client& who, const command& words)
{
    const std::int64_t version = words.size() > 1 ? integer_in(words[1]).value_or(0) : who.protocol;
    if (version != 2 && version != 3)
    {
        return "-NOPROTO unsupported protocol version\r\n";
    }
    for (std::size_t word = 2; word < words.size();)
    {
        const std::string option = in_capitals(words[word]);
        if (option == "AUTH" && word + 2 < words.size())
        {
            if (const std::string refused = auth(who, words[word + 1], words[word + 2]); refused != ok_reply)
            {
                return refused;
            }
            word += 3;
        }
        else if (option == "SETNAME" && word + 1 < words.size())
        {
            who.name = words[word + 1];
            word += 2;
        }
        else
        {
            return syntax_error_reply;
        }
    }
    if (!who.authenticated)
    {
        return "-NOAUTH HELLO must be called with the client already authenticated\r\n";
    }
    who.protocol = static_cast<int>(version);
    return (version == 3 ? "%7\r\n" : "*14\r\n") + bulk("server") + bulk("redis") + bulk("version") +
           bulk("7.0.15") + bulk("proto") + number(version) + bulk("id") + number(who.id) + bulk("mode") +
           bulk(options_.mode) + bulk("role") + bulk(options_.role == "slave" ? "replica" : options_.role) +
           bulk("modules") + "*0\r\n";
}

std::string fake_redis::auth(client& who, const std::string& user, const std::string& password) const
{
    if (user == "default" && (options_.password.empty() || password == options_.password))
    {
        who.authenticated = true;
        return ok_reply;
    }
    return "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
}

std::string fake_redis::client_command(client& who, const command& words)
{
    const std::string what = in_capitals(words[1]);
    if (what == "ID")
    {
        return number(who.id);
    }
    if (what == "SETNAME" && words.size() == 3)
    {
        who.name = words[2];
        return ok_reply;
    }
    if (what == "SETINFO" || what == "TRACKING" || what == "NO-EVICT")
    {
        return ok_reply;
    }
    if (what == "KILL" && words.size() >= 4 && in_capitals(words[2]) == "ID")
    {
        const auto found = clients_.find(integer_in(words[3]).value_or(0));
        // SKIPME is yes by default: a client doesn't kill its own connection.
        if (found == clients_.end() || found->first == who.id)
        {
            return number(0);
        }
        found->second->abort();
        clients_.erase(found);
        return number(1);
    }
    return syntax_error_reply;
}

std::string fake_redis::time()
{
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    return "*2\r\n" + bulk(std::to_string(now / 1'000'000)) + bulk(std::to_string(now % 1'000'000));
}

std::string fake_redis::info() const
{
    return fmt::format(
        "# Server\r\nredis_version:7.0.15\r\nredis_mode:{}\r\nprocess_id:1\r\nrun_id:{}\r\n"
        "uptime_in_seconds:1\r\n\r\n# Replication\r\nrole:{}\r\nconnected_slaves:0\r\n\r\n"
        "# Cluster\r\ncluster_enabled:{}\r\n",
        options_.mode, options_.run_id, options_.role, options_.mode == "cluster" ? 1 : 0);
}

std::string fake_redis::role() const
{
    return options_.role == "master"
               ? "*3\r\n" + bulk("master") + number(0) + "*0\r\n"
               : "*5\r\n" + bulk("slave") + bulk("127.0.0.1") + number(6379) + bulk("connected") + number(0);
}

std::string fake_redis::config(const client& who, const command& words) const
{
    if (words.size() != 3 || in_capitals(words[1]) != "GET")
    {
        return syntax_error_reply;
    }
    const bool known = in_capitals(words[2]) == "MAXMEMORY-POLICY";
    const std::string head =
        who.protocol == 3 ? (known ? "%1\r\n" : "%0\r\n") : (known ? "*2\r\n" : "*0\r\n");
    return known ? head + bulk("maxmemory-policy") + bulk(options_.maxmemory_policy) : head;
}

std::string fake_redis::script_command(const command& words)
{
    const std::string what = words.size() > 1 ? in_capitals(words[1]) : "";
    if (what == "FLUSH")
    {
        scripts_.clear();
        return ok_reply;
    }
    if (what != "LOAD" || words.size() != 3 || scripts_.size() >= max_scripts)
    {
        return syntax_error_reply;
    }
    const std::string name = sha1_hex(words[2]);
    scripts_[name] = words[2];
    return bulk(name);
}

} // namespace redlock::test
