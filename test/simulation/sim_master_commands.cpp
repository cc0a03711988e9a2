// SPDX-License-Identifier: BSL-1.0
// The regular replies of a simulated master, and its keys, which expire by the virtual clock.
#include "command_arguments.hpp"
#include "lua_scripts.hpp"
#include "sim_master.hpp"
#include "store_commands.hpp"

#include "net/arming_scripts.hpp"
#include "net/command.hpp"
#include "net/queue_scripts.hpp"
#include "support/fake_replies.hpp"
#include "support/sha1.hpp"

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

constexpr const char* wrong_password = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// The digests of the library's scripts are computed once, because tens of thousands of connections are made.
std::string digest_of(const std::string& script)
{
    static const std::map<std::string_view, std::string> known{
        {net::extend_script.text, sha1_hex(net::extend_script.text)},
        {net::release_script.text, sha1_hex(net::release_script.text)},
        {net::ask_script.text, sha1_hex(net::ask_script.text)},
        {net::release_to_queue_script.text, sha1_hex(net::release_to_queue_script.text)},
        {net::guarded_acquire_script.text, sha1_hex(net::guarded_acquire_script.text)},
        {net::guarded_ask_script.text, sha1_hex(net::guarded_ask_script.text)},
        {net::guarded_extend_script.text, sha1_hex(net::guarded_extend_script.text)},
        {net::raise_script.text, sha1_hex(net::raise_script.text)},
        {net::quarantine_script.text, sha1_hex(net::quarantine_script.text)},
        {net::largest_counter_script.text, sha1_hex(net::largest_counter_script.text)},
        {net::arm_script.text, sha1_hex(net::arm_script.text)}};
    const auto found = known.find(script);
    return found != known.end() ? found->second : sha1_hex(script);
}

constexpr std::string_view queue_prefix = "redlock-queue:";
constexpr const char* no_database = "-ERR DB index is out of range\r\n";
constexpr const char* hidden_database = "-NOPERM this user has no permissions to access this database\r\n";

bool is_database(std::int64_t number)
{
    return number >= 0 && number < static_cast<std::int64_t>(master_store::databases);
}

/// Reads the number of a database. Returns the error reply, or OK and sets `database`.
std::string read_database(const std::string& word, std::size_t& database)
{
    const std::optional<std::int64_t> number = integer_in(word);
    if (!number)
    {
        return no_integer;
    }
    if (!is_database(*number))
    {
        return no_database;
    }
    database = static_cast<std::size_t>(*number);
    return ok_reply;
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
        {"HELLO again", &sim_master::hello},
        {"INFO", &sim_master::info},
        {"SCRIPT FLUSH", &sim_master::forget_scripts},
        {"SCRIPT LOAD", &sim_master::load_script},
        {"SELECT",
         [](auto& it, auto& who, auto& given) { return it.choose_database(given[1], who.database); }},
        {"SWAPDB", [](auto& it, auto& who, auto& given) { return it.swap_databases(who, given); }},
        {"FLUSHALL", [](auto& it, auto& who, auto& given) { return it.flush_all(who, given); }},
        {"PUBLISH", [](auto& it, auto&, auto& given) { return number(it.publish(given[1], given[2])); }},
        {"SUBSCRIBE", &sim_master::subscribe},
        {"may greet?", &sim_master::hello},
        {"may kill?", &sim_master::kill}};
    const auto found = handlers.find(what);
    if (found != handlers.end())
    {
        return found->second(*this, from, words);
    }
    const bool is_script = name_of(words).starts_with("EVAL");
    return is_script ? script(from, words) : run_on(keys_, words)->bytes(from.protocol);
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

/// Returns the reply to SELECT. Sets `chosen` if that is no error.
std::string sim_master::choose_database(const std::string& word, std::size_t& chosen) const
{
    std::size_t database = 0;
    std::string reply = read_database(word, database);
    if (reply != ok_reply)
    {
        return reply;
    }
    if (hidden_databases.contains(database))
    {
        return hidden_database;
    }
    chosen = database;
    return reply;
}

/// The script continues in another database. Its client doesn't.
reply_value sim_master::select_in_script(const command& words)
{
    std::size_t database = 0;
    const std::string reply = choose_database(words[1], database);
    if (reply != ok_reply)
    {
        return reply_value::error(reply.substr(1, reply.size() - 3));
    }
    keys_.select(database);
    return reply_value::status("OK");
}

std::string sim_master::swap_databases(const client_state&, const command& words)
{
    const std::optional<std::int64_t> one = integer_in(words[1]);
    const std::optional<std::int64_t> other = integer_in(words[2]);
    if (!one || !other)
    {
        return one ? "-ERR invalid second DB index\r\n" : "-ERR invalid first DB index\r\n";
    }
    if (!is_database(*one) || !is_database(*other))
    {
        return no_database;
    }
    swap_databases(static_cast<std::size_t>(*one), static_cast<std::size_t>(*other));
    return ok_reply;
}

std::string sim_master::flush_all(const client_state&, const command& words)
{
    const std::string how = words.size() == 2 ? in_capitals(words[1]) : "SYNC";
    if (words.size() > 2 || (how != "SYNC" && how != "ASYNC"))
    {
        return syntax_error_reply;
    }
    flush_all();
    return ok_reply;
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

/// Databases without keys have no line.
std::string sim_master::keyspace_text() const
{
    std::string text;
    for (std::size_t database = 0; database < master_store::databases; ++database)
    {
        if (const std::size_t keys = keys_.size_of(database); keys > 0)
        {
            text += fmt::format("db{}:keys={},expires=0,avg_ttl=0\r\n", database, keys);
        }
    }
    return text;
}

std::string sim_master::info_text(const command& words) const
{
    std::string about;
    const auto append_if_asked = [&](std::string_view section, const auto& text)
    {
        const bool asked =
            words.size() == 1 || std::any_of(
                                     words.begin() + 1, words.end(),
                                     [&](const std::string& each) { return in_capitals(each) == section; });
        if (asked)
        {
            about += (about.empty() ? "" : "\r\n") + text();
        }
    };
    append_if_asked(
        "SERVER",
        [this]
        {
            return fmt::format(
                "# Server\r\nredis_version:{}\r\nredis_mode:{}\r\n{}", version, mode,
                tells_run_id ? "run_id:" + run_id + "\r\n" : "");
        });
    append_if_asked(
        "MEMORY", [this] { return fmt::format("# Memory\r\nmaxmemory_policy:{}\r\n", maxmemory_policy); });
    append_if_asked(
        "REPLICATION",
        [this]
        {
            return fmt::format(
                "# Replication\r\nrole:{}\r\nmaster_replid:{}\r\n", role == "replica" ? "slave" : role,
                replication_id);
        });
    append_if_asked("KEYSPACE", [this] { return "# Keyspace\r\n" + keyspace_text(); });
    return about;
}

std::string sim_master::info(const client_state& who, const command& words) const
{
    const std::string about = info_text(words);
    return who.protocol == 3 ? fmt::format("={}\r\ntxt:{}\r\n", about.size() + 4, about) : bulk(about);
}

/// EVALSHA or EVAL.
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
    const auto run = [this](const command& inner) { return run_for_script(inner); };
    return run_script({scripts_.at(digest), digest, given.keys, given.arguments, run}).bytes(from.protocol);
}

/// A command in a script is refused as outside of it, in other words.
reply_value sim_master::run_for_script(const command& words)
{
    const std::string name = name_of(words);
    if (const auto refused = habits.find(name); refused != habits.end())
    {
        const std::string& outside = refused->second;
        return reply_value::error(
            outside.starts_with("-NOPERM")
                ? "ERR The user executing the script can't run this command or subcommand"
            : outside.starts_with("-ERR unknown command") ? "ERR Unknown Redis command called from script"
                                                          : outside.substr(1, outside.size() - 3));
    }
    if (name == "INFO")
    {
        return reply_value::bulk(info_text(words));
    }
    if (name == "SELECT" && words.size() == 2)
    {
        return select_in_script(words);
    }
    if (name == "PUBLISH" && words.size() == 3)
    {
        return reply_value::integer(publish(words[1], words[2]));
    }
    return run_on(keys_, words).value_or(reply_value::error("ERR Unknown Redis command called from script"));
}

/// A client of RESP2 is answered by arrays. That it may send little else from then on is not simulated.
std::string sim_master::subscribe(client_state& who, const command& words) const
{
    std::string bytes;
    for (auto each = words.begin() + 1; each != words.end(); ++each)
    {
        if (std::find(who.channels.begin(), who.channels.end(), *each) == who.channels.end())
        {
            who.channels.push_back(*each);
        }
        bytes += (who.protocol == 3 ? ">3\r\n" : "*3\r\n") + bulk("subscribe") + bulk(*each) +
                 number(static_cast<std::int64_t>(who.channels.size()));
    }
    return bytes;
}

/// The messages are sent ahead of the reply to the command that published them.
std::int64_t sim_master::publish(const std::string& channel, const std::string& message)
{
    std::int64_t receivers = 0;
    for (const auto& [id, link] : clients_)
    {
        const client_state& who = link->at_master();
        if (std::find(who.channels.begin(), who.channels.end(), channel) != who.channels.end())
        {
            ++receivers;
            pushes_.emplace_back(
                link,
                (who.protocol == 3 ? ">3\r\n" : "*3\r\n") + bulk("message") + bulk(channel) + bulk(message));
        }
    }
    published_.push_back({channel, message, receivers});
    return receivers;
}

bool sim_master::has_other_type(const std::string& key)
{
    const master_store::entry* const found = keys_.find(key);
    return found != nullptr && found->of != master_store::type::text;
}

void sim_master::set_hash(const std::string& key)
{
    keys_.remove(key);
    keys_.change(key, master_store::type::hash).fields = {{"a field", "a value"}};
}

void sim_master::set_field(const std::string& key, const std::string& field, const std::string& value)
{
    keys_.change(key, master_store::type::hash).fields[field] = value;
}

bool sim_master::has_queued(const std::string& key, const std::string& member)
{
    const master_store::entry* const found = keys_.find("redlock-queue:order:" + key);
    return found != nullptr && found->members.score(member).has_value();
}

std::optional<std::string> sim_master::field(const std::string& key, const std::string& name)
{
    const master_store::entry* const found = keys_.find(key);
    const auto at = found != nullptr ? found->fields.find(name) : decltype(found->fields.end()){};
    return found != nullptr && at != found->fields.end() ? std::optional{at->second} : std::nullopt;
}

std::vector<std::pair<std::string, std::string>> sim_master::contents()
{
    auto all = keys_.contents();
    std::erase_if(all, [](const auto& each) { return each.first.starts_with(queue_prefix); });
    return all;
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
