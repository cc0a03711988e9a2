// SPDX-License-Identifier: BSL-1.0
// The regular replies of a simulated master, and its keys, which expire by the virtual clock.
#include "command_arguments.hpp"
#include "key_commands.hpp"
#include "sim_master.hpp"

#include "support/fake_replies.hpp"

#include <boost/algorithm/string/case_conv.hpp>
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

constexpr const char* line_suffix = ":redlock-line";

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
        {"TIME", [](auto& it, auto&, auto&) { return it.time(); }},
        {"may kill?", &sim_master::kill}};
    if (const auto found = handlers.find(what); found != handlers.end())
    {
        return found->second(*this, from, words);
    }
    const std::optional<std::string> reply = run_key_command(keys_, words, from.protocol);
    return reply ? *reply : script(from, words);
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
    const compiled_script& loaded = script_engine::of_this_thread().compile(words[2]);
    if (!loaded.error.empty())
    {
        return loaded.error;
    }
    scripts_[loaded.digest] = &loaded;
    return bulk(loaded.digest);
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

std::string sim_master::script(const client_state& from, const command& words)
{
    constexpr std::size_t digest_size = 40;
    const bool by_text = name_of(words) == "EVAL";
    const script_arguments given{words};
    if (!given.error.empty() && (by_text || words[1].size() == digest_size))
    {
        return given.error;
    }
    script_engine& engine = script_engine::of_this_thread();
    const compiled_script* asked = nullptr;
    if (by_text)
    {
        asked = &engine.compile(words[1]);
        if (!asked->error.empty())
        {
            return asked->error;
        }
        scripts_[asked->digest] = asked;
    }
    else if (const auto found = scripts_.find(boost::to_lower_copy(words[1])); found != scripts_.end())
    {
        asked = found->second;
    }
    else
    {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    return engine.run(
        *asked, {given.keys, given.arguments},
        [&](const command& called) { return run_in_script(from, called); }, from.protocol);
}

/// Executes a command of a script, which speaks RESP2.
std::string sim_master::run_in_script(const client_state& from, const command& words)
{
    if (const std::optional<std::string> refused = refusal_in_script(words))
    {
        return *refused;
    }
    constexpr int protocol = 2;
    if (const std::optional<std::string> reply = run_key_command(keys_, words, protocol))
    {
        return *reply;
    }
    const std::string name = name_of(words);
    client_state caller{.origin = from.origin, .id = from.id, .protocol = protocol};
    return name == "TIME" ? time() : name == "SELECT" ? select(words) : info(caller, words);
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
    const std::string* const text = found != nullptr ? found->as<std::string>() : nullptr;
    return text != nullptr ? std::optional{*text} : std::nullopt;
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
