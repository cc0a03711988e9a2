// SPDX-License-Identifier: BSL-1.0
// The regular replies of a simulated master, and its keys, which expire by the virtual clock.
#include "command_arguments.hpp"
#include "sim_master.hpp"

#include "net/command.hpp"
#include "support/fake_replies.hpp"
#include "support/sha1.hpp"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <tuple>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

constexpr const char* wrong_password = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

std::string script_error(std::string_view what, std::string_view digest, int line)
{
    return fmt::format("-ERR {} script: {}, on @user_script:{}.\r\n", what, digest, line);
}

/// The digests of the library's scripts are computed once, because tens of thousands of connections are made.
std::string digest_of(const std::string& script)
{
    static const std::map<std::string_view, std::string> known{
        {net::extend_script.text, sha1_hex(net::extend_script.text)},
        {net::release_script.text, sha1_hex(net::release_script.text)},
        {net::turn_script.text, sha1_hex(net::turn_script.text)}};
    const auto found = known.find(script);
    return found != known.end() ? found->second : sha1_hex(script);
}

constexpr const char* line_suffix = ":redlock-line";

/// The value of a queue's key.
struct line_parts
{
    std::string whose;
    std::int64_t since;
    std::int64_t turn; // Of the last one in it.
    std::string last;
};

std::optional<line_parts> line_in(const std::string& value)
{
    static const std::regex form{"line ([0-9a-fA-F]+) ([0-9]+) ([0-9]+) ([^ ]+)"};
    std::smatch parts;
    if (!std::regex_match(value, parts, form))
    {
        return std::nullopt;
    }
    return line_parts{parts[1], std::stoll(parts[2]), std::stoll(parts[3]), parts[4]};
}

} // namespace

std::string sim_master::run(client_state& from, const std::string& what, const command& words)
{
    if (what == "HELLO" && !knows_hello)
    {
        return unknown_command(words);
    }
    if (const std::optional<std::string> refused = refusal_of(words))
    {
        return *refused;
    }
    if (!from.authenticated && what != "HELLO" && what != "AUTH")
    {
        return "-NOAUTH Authentication required.\r\n";
    }
    using handler = std::function<std::string(sim_master&, client_state&, const command&)>;
    static const std::map<std::string, handler> handlers{
        {"AUTH", &sim_master::log_in},
        {"CLIENT ID", [](auto&, const auto& who, auto&) { return number(who.id); }},
        {"CLIENT KILL", &sim_master::kill},
        {"CLIENT SETNAME",
         [](auto&, auto&, auto& given) { return refusal_of_name(given[2]).value_or(ok_reply); }},
        {"HELLO", &sim_master::hello},
        {"INFO", &sim_master::info},
        {"SCRIPT FLUSH", &sim_master::forget_scripts},
        {"SCRIPT LOAD", &sim_master::load_script},
        {"SELECT", [](auto&, auto&, auto& given) { return select(given); }},
        {"SET", &sim_master::set_key},
        {"TIME", [](auto& it, auto&, auto&) { return it.time(); }},
        {"may kill?", &sim_master::kill}};
    const auto found = handlers.find(what);
    return found != handlers.end() ? found->second(*this, from, words) : script(from, words);
}

std::string sim_master::hello(client_state& who, const command& words) const
{
    const hello_arguments asked{words};
    // The client is logged in as soon as this is read, even if a later argument is wrong.
    if (asked.user && !lets_in(who, *asked.user, asked.password))
    {
        return wrong_password;
    }
    if (!asked.error.empty())
    {
        return asked.error;
    }
    if (!who.authenticated)
    {
        return "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
               "<user> <pass> option can be used to authenticate the client and select the RESP protocol "
               "version "
               "at the same time\r\n";
    }
    who.protocol = asked.protocol.value_or(who.protocol);
    return (who.protocol == 3 ? "%7\r\n" : "*14\r\n") + bulk("server") + bulk("redis") + bulk("version") +
           bulk(version) + bulk("proto") + number(who.protocol) + bulk("id") + number(who.id) + bulk("mode") +
           bulk(mode) + bulk("role") + bulk(role) + bulk("modules") + "*0\r\n";
}

/// AUTH [user] password.
std::string sim_master::log_in(client_state& who, const command& words) const
{
    if (words.size() > 3)
    {
        return syntax_error_reply;
    }
    if (words.size() == 2 && password.empty())
    {
        return "-ERR AUTH <password> called without any password configured for the default user. Are you "
               "sure "
               "your configuration is correct?\r\n";
    }
    return lets_in(who, words.size() == 3 ? words[1] : "default", words.back()) ? ok_reply : wrong_password;
}

bool sim_master::lets_in(client_state& who, std::string_view user, std::string_view given) const
{
    const bool right = user == username && (password.empty() || given == password);
    who.authenticated = who.authenticated || right;
    return right;
}

/// All databases share one set of keys.
std::string sim_master::select(const command& words)
{
    const std::optional<std::int64_t> database = integer_in(words[1]);
    if (!database)
    {
        return no_integer;
    }
    constexpr std::int64_t databases = 16;
    return *database >= 0 && *database < databases ? ok_reply : "-ERR DB index is out of range\r\n";
}

std::string sim_master::load_script(const client_state&, const command& words)
{
    const std::string digest = digest_of(words[2]);
    scripts_[digest] = words[2];
    return bulk(digest);
}

std::string sim_master::forget_scripts(const client_state&, const command& words)
{
    const std::string how = words.size() == 3 ? in_capitals(words[2]) : "";
    if (words.size() > 3 || (words.size() == 3 && how != "SYNC" && how != "ASYNC"))
    {
        return "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n";
    }
    flush_scripts();
    return ok_reply;
}

/// CLIENT KILL ID id. Commands of that client that weren't executed are never executed.
std::string sim_master::kill(const client_state& from, const command& words)
{
    const kill_arguments asked{words};
    if (!asked.error.empty())
    {
        return asked.error;
    }
    const auto found = clients_.find(asked.id);
    if (found == clients_.end() || asked.id == from.id)
    {
        return number(0);
    }
    const std::shared_ptr<virtual_link> who = found->second;
    clients_.erase(found);
    who->close_by_master(asio::error::eof);
    return number(1);
}

std::string sim_master::time() const
{
    const auto shown = std::chrono::floor<std::chrono::microseconds>(keys_.now().time_since_epoch());
    const std::string seconds = std::to_string(shown.count() / 1'000'000);
    return "*2\r\n" + bulk(seconds) + bulk(std::to_string(shown.count() % 1'000'000));
}

std::string sim_master::info(const client_state& who, const command& words) const
{
    const std::map<std::string, std::string> sections{
        {"SERVER", fmt::format(
                       "# Server\r\nredis_version:{}\r\nredis_mode:{}\r\n{}", version, mode,
                       tells_run_id ? "run_id:" + run_id + "\r\n" : "")},
        {"MEMORY", fmt::format("# Memory\r\nmaxmemory_policy:{}\r\n", maxmemory_policy)},
        {"REPLICATION", fmt::format("# Replication\r\nrole:{}\r\n", role == "replica" ? "slave" : role)}};
    std::string about;
    for (const char* const section : {"SERVER", "MEMORY", "REPLICATION"})
    {
        const bool asked =
            words.size() == 1 || std::any_of(
                                     words.begin() + 1, words.end(),
                                     [&](const std::string& each) { return in_capitals(each) == section; });
        if (asked)
        {
            about += (about.empty() ? "" : "\r\n") + sections.at(section);
        }
    }
    return who.protocol == 3 ? fmt::format("={}\r\ntxt:{}\r\n", about.size() + 4, about) : bulk(about);
}

std::string sim_master::set_key(const client_state& from, const command& words)
{
    const set_arguments asked{words};
    if (!asked.error.empty())
    {
        return asked.error;
    }
    const bool exists = keys_.find(words[1]) != nullptr;
    if (exists ? asked.only_new : asked.only_existing)
    {
        return null_for(from);
    }
    keys_.put(words[1], words[2], asked.at_that_time ? *asked.ttl - keys_.whole_now() : asked.ttl);
    return ok_reply;
}

/// EVALSHA or EVAL of one of the library's scripts, which are recognised by their text or digest.
std::string sim_master::script(const client_state& from, const command& words)
{
    constexpr std::size_t digest_size = 40;
    const bool by_text = name_of(words) == "EVAL";
    const script_arguments given{words};
    const std::string digest = by_text ? digest_of(words[1]) : words[1];
    if (!given.error.empty() && (by_text || digest.size() == digest_size))
    {
        return given.error;
    }
    if (by_text)
    {
        scripts_[digest] = words[1];
    }
    else if (!scripts_.contains(digest))
    {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    if (given.keys.empty())
    {
        return script_error("Lua redis lib command arguments must be strings or integers", digest, 1);
    }
    // Each script reads its key first; one of them then reads the key of the queue.
    const std::string& of = scripts_.at(digest);
    const bool reads_line = of == net::turn_script.text;
    const std::string& key = given.keys.front();
    if (has_other_type(key) || (reads_line && has_other_type(key + line_suffix)))
    {
        const int line = !reads_line ? 1 : has_other_type(key) ? 2 : 3;
        return fmt::format(
            "-WRONGTYPE Operation against a key holding the wrong kind of value script: {}, on "
            "@user_script:{}.\r\n",
            digest, line);
    }
    return of == net::inspect_script        ? inspect(from, given.keys.front())
           : of == net::release_script.text ? release(given)
           : of == net::extend_script.text  ? extend(given, digest)
           : of == net::turn_script.text    ? turn(given)
                                            : "-ERR this script is not simulated\r\n";
}

bool sim_master::has_other_type(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr && found->is_hash;
}

std::string sim_master::inspect(const client_state& from, const std::string& key)
{
    const master_store::entry* const held = keys_.find(key);
    if (held == nullptr)
    {
        return "*2\r\n" + null_for(from) + number(-2);
    }
    const std::int64_t left = held->expires_at ? keys_.left(*held).count() : -1;
    return "*2\r\n" + bulk(held->value.substr(0, net::max_inspected_bytes)) + number(left);
}

std::string sim_master::release(const script_arguments& given)
{
    const master_store::entry* const held = keys_.find(given.keys.front());
    if (held == nullptr || given.arguments.empty() || held->value != given.arguments.front())
    {
        return number(0);
    }
    const master_store::entry* const line = keys_.find(given.keys.front() + line_suffix);
    const bool asked = given.arguments.size() > 1;
    const bool waits = asked && line != nullptr && line->expires_at && keys_.left(*line).count() > 0;
    remove(given.keys.front());
    return number(waits ? 3 : 1);
}

std::string sim_master::extend(const script_arguments& given, const std::string& digest)
{
    const master_store::entry* const held = keys_.find(given.keys.front());
    if (held == nullptr || given.arguments.empty() || held->value != given.arguments.front())
    {
        return number(0);
    }
    const std::string wanted = given.arguments.size() > 1 ? given.arguments[1] : "";
    const std::optional<std::int64_t> ttl = integer_in(wanted);
    const bool is_number = !wanted.empty() && wanted.find_first_not_of("-0123456789") == std::string::npos;
    if (!is_number)
    {
        return script_error("user_script:2: attempt to compare number with nil", digest, 2);
    }
    if (!ttl)
    {
        return script_error("value is not an integer or out of range", digest, 2);
    }
    const std::int64_t left = held->expires_at ? keys_.left(*held).count() : -1;
    if (left < *ttl && *ttl == 0)
    {
        keys_.remove(given.keys.front()); // Expired at once.
    }
    else if (left < *ttl)
    {
        keys_.expire_in(given.keys.front(), std::chrono::milliseconds{*ttl});
    }
    return number(1);
}

/// Accepts only integers as numbers, as the library sends them.
std::string sim_master::turn(const script_arguments& given)
{
    constexpr std::size_t all = 5;
    constexpr std::int64_t hour = 3'600'000;
    std::vector<std::int64_t> numbers;
    for (std::size_t at = 1; at < given.arguments.size(); ++at)
    {
        if (const std::optional<std::int64_t> number = integer_in(given.arguments[at]))
        {
            numbers.push_back(*number);
        }
    }
    if (given.arguments.size() != all || numbers.size() != all - 1)
    {
        return "-ERR these arguments are not simulated\r\n";
    }
    const std::string& owner = given.arguments.front();
    const auto& [ttl, in_line, waited_for, widest] = std::tie(numbers[0], numbers[1], numbers[2], numbers[3]);
    const std::string& key = given.keys.front();
    const std::string line_key = key + line_suffix;

    const master_store::entry* const held = keys_.find(key);
    const master_store::entry* const line = keys_.find(line_key);
    const std::optional<line_parts> known = line != nullptr ? line_in(line->value) : std::nullopt;
    if (line != nullptr && !known)
    {
        return "-ERR the key of the line is no line\r\n";
    }
    if (held == nullptr && (in_line == 1 || !known))
    {
        keys_.put(key, owner, std::chrono::milliseconds{ttl});
        if (known && known->last != owner)
        {
            return number(-1);
        }
        remove(line_key);
        return number(0);
    }
    const std::int64_t now = keys_.whole_now().count();
    const std::string whose = sha1_hex(held != nullptr ? held->value : "");
    const bool same = held != nullptr && known && known->whose == whose && known->since <= now;
    const std::int64_t since = same ? known->since : now;
    const bool in_front = known && known->turn >= now && known->turn <= now + hour;
    const std::int64_t place = std::min(std::max<std::int64_t>((now - since) / 4, 1), widest);
    const std::int64_t turn = std::min((in_front ? known->turn : now) + place + 1 - in_line, now + hour);
    keys_.put(
        line_key, fmt::format("line {} {} {} {}", whose, since, turn, owner),
        std::chrono::milliseconds{turn - now + waited_for});
    return number(turn - now);
}

std::size_t sim_master::key_count()
{
    const auto all = keys_.contents();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& each) { return !each.first.ends_with(line_suffix); }));
}

std::optional<std::string> sim_master::value(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr ? std::optional{found->value} : std::nullopt;
}

std::optional<clock::time_point> sim_master::expiry(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr ? found->expires_at : std::nullopt;
}

void sim_master::set(const std::string& key, const std::string& value, std::optional<clock::duration> ttl)
{
    const auto whole =
        ttl ? std::optional{std::chrono::floor<std::chrono::milliseconds>(*ttl)} : std::nullopt;
    keys_.put(key, value, whole);
}

} // namespace redlock::test
