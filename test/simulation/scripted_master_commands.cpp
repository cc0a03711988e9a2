// SPDX-License-Identifier: BSL-1.0
// What a scripted master answers when it behaves, and its keys, which expire by the virtual clock.
#include "scripted_master.hpp"

#include "net/command.hpp"
#include "support/sha1.hpp"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

constexpr const char* ok = "+OK\r\n";
constexpr const char* wrong_syntax = "-ERR syntax error\r\n";

std::string text(std::string_view value)
{
    return fmt::format("${}\r\n{}\r\n", value.size(), value);
}

std::string integer(std::int64_t value)
{
    return fmt::format(":{}\r\n", value);
}

std::string null(const client_state& who)
{
    return who.protocol == 3 ? "_\r\n" : "$-1\r\n";
}

/// Those of the library's scripts are computed once: connections are made by the ten thousand.
std::string digest_of(const std::string& script)
{
    static const std::map<std::string_view, std::string> known{
        {net::extend_script.text, sha1_hex(net::extend_script.text)},
        {net::release_script.text, sha1_hex(net::release_script.text)}};
    const auto found = known.find(script);
    return found != known.end() ? found->second : sha1_hex(script);
}

std::int64_t number_in(const std::string& word)
{
    std::int64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

} // namespace

std::string scripted_master::run(client_state& from, const std::string& what, const command& words)
{
    if (what == "HELLO" && knows_hello)
    {
        return hello(from, words);
    }
    if (what == "AUTH" && words.size() >= 2)
    {
        return log_in(from, words.back());
    }
    if (what != "HELLO" && !from.authenticated)
    {
        return "-NOAUTH Authentication required.\r\n";
    }
    if (what == "CLIENT ID")
    {
        return integer(from.id);
    }
    if (what == "CLIENT SETNAME" || what == "SELECT")
    {
        return ok;
    }
    if (what == "CLIENT KILL")
    {
        return kill(from, words);
    }
    if (what == "INFO")
    {
        return info(from);
    }
    if (what == "TIME")
    {
        return time();
    }
    if (what == "may kill?")
    {
        return integer(0);
    }
    if (what == "SCRIPT LOAD" && words.size() == 3)
    {
        const std::string digest = digest_of(words[2]);
        scripts_[digest] = words[2];
        return text(digest);
    }
    if (what == "SET")
    {
        return set_key(from, words);
    }
    return what == "extend" || what == "release"
               ? script(words)
               : fmt::format("-ERR unknown command '{}', with args beginning with: \r\n", words.front());
}

/// HELLO 3 [AUTH user password].
std::string scripted_master::hello(client_state& who, const command& words) const
{
    if (words.size() == 5)
    {
        if (std::string refused = log_in(who, words[4]); refused != ok)
        {
            return refused;
        }
    }
    if (!who.authenticated)
    {
        return "-NOAUTH HELLO must be called with the client already authenticated\r\n";
    }
    who.protocol = 3;
    return "%7\r\n" + text("server") + text("redis") + text("version") + text("7.0.15") + text("proto") +
           integer(3) + text("id") + integer(who.id) + text("mode") + text(mode) + text("role") + text(role) +
           text("modules") + "*0\r\n";
}

std::string scripted_master::log_in(client_state& who, std::string_view given) const
{
    if (given != password)
    {
        return "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    }
    who.authenticated = true;
    return ok;
}

/// CLIENT KILL ID id: what that client had sent and wasn't done yet is never done.
std::string scripted_master::kill(const client_state& from, const command& words)
{
    if (words.size() != 4 || name_of({words[2]}) != "ID")
    {
        return wrong_syntax;
    }
    const std::int64_t id = number_in(words[3]);
    const auto found = clients_.find(id);
    if (found == clients_.end() || id == from.id)
    {
        return integer(0);
    }
    const std::shared_ptr<virtual_link> who = found->second;
    clients_.erase(found);
    who->close_by_master(asio::error::eof);
    return integer(1);
}

std::string scripted_master::time() const
{
    const auto shown = std::chrono::floor<std::chrono::microseconds>(keys_.now().time_since_epoch());
    const std::string seconds = std::to_string(shown.count() / 1'000'000);
    return "*2\r\n" + text(seconds) + text(std::to_string(shown.count() % 1'000'000));
}

std::string scripted_master::info(const client_state& who) const
{
    const std::string about = fmt::format(
        "# Server\r\nredis_version:{}\r\nredis_mode:{}\r\n{}\r\n# Memory\r\nmaxmemory_policy:{}\r\n"
        "# Replication\r\nrole:{}\r\n",
        version, mode, tells_run_id ? "run_id:" + run_id + "\r\n" : std::string{}, maxmemory_policy,
        role == "replica" ? "slave" : role);
    return who.protocol == 3 ? fmt::format("={}\r\ntxt:{}\r\n", about.size() + 4, about) : text(about);
}

/// SET key value NX PX milliseconds: the one form that a lock may use.
std::string scripted_master::set_key(const client_state& from, const command& words)
{
    if (words.size() != 6 || words[3] != "NX" || words[4] != "PX")
    {
        return wrong_syntax;
    }
    if (keys_.find(words[1]) != nullptr)
    {
        return null(from);
    }
    keys_.put(words[1], words[2], std::chrono::milliseconds{number_in(words[5])});
    return ok;
}

/// EVALSHA or EVAL of one of the library's scripts, which are told apart by what they are.
std::string scripted_master::script(const command& words)
{
    if (words.size() < 5 || words[2] != "1")
    {
        return wrong_syntax;
    }
    if (name_of(words) == "EVAL")
    {
        scripts_[digest_of(words[1])] = words[1];
    }
    else if (!scripts_.contains(words[1]))
    {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    const master_store::entry* const held = keys_.find(words[3]);
    if (held == nullptr || held->value != words[4])
    {
        return integer(0);
    }
    if (what_of(words) == "release")
    {
        keys_.remove(words[3]);
        return integer(1);
    }
    const std::chrono::milliseconds ttl{words.size() > 5 ? number_in(words[5]) : 0};
    if (!held->expires_at || keys_.left(*held) < ttl)
    {
        keys_.expire_in(words[3], ttl);
    }
    return integer(1);
}

std::optional<std::string> scripted_master::value(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr ? std::optional{found->value} : std::nullopt;
}

std::optional<clock::time_point> scripted_master::expiry(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr ? found->expires_at : std::nullopt;
}

void scripted_master::set(
    const std::string& key, const std::string& value, std::optional<clock::duration> ttl)
{
    const auto whole =
        ttl ? std::optional{std::chrono::floor<std::chrono::milliseconds>(*ttl)} : std::nullopt;
    keys_.put(key, value, whole);
}

} // namespace redlock::test
