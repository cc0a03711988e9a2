// SPDX-License-Identifier: BSL-1.0
// Not in it, since the simulation has none of it: MULTI, databases, options of SET and CLIENT KILL that the library never sends, users and their permissions, CONFIG, PING.
#include "vocabulary.hpp"

#include "net/queue_scripts.hpp"
#include "resp/serialise.hpp"

#include <algorithm>
#include <vector>

namespace redlock::test
{

namespace
{

constexpr std::array<std::string_view, 3> owners{"x", "y", ""};
// Far away, so that neither the time that a test takes nor its order matters.
constexpr std::array<std::string_view, 3> ttls{"1000000", "2000000", "3000000"};
constexpr std::array<std::string_view, 5> wrong_ttls{"0", "-5", "x", "", "99999999999999999999"};
constexpr std::array<std::string_view, 2> passwords{right_password, "wrong"};
constexpr std::array<std::string_view, 3> users{"default", "default", "nobody"};

std::string ttl_of(chance& from)
{
    return from.in_percent(90) ? from.one_of(ttls) : from.one_of(wrong_ttls);
}

command set_command(chance& from)
{
    command words{"SET", from.one_of(keys), from.one_of(owners)};
    static constexpr std::array<std::string_view, 5> conditions{"NX", "NX", "nx", "NX", "XX"};
    std::vector<command> options;
    if (from.in_percent(95))
    {
        options.push_back({from.one_of(conditions)});
    }
    if (from.in_percent(95))
    {
        options.push_back({from.in_percent(90) ? "PX" : "px", ttl_of(from)});
    }
    if (options.size() == 2 && from.in_percent(10))
    {
        std::swap(options[0], options[1]);
    }
    for (const command& each : options)
    {
        words.insert(words.end(), each.begin(), each.end());
    }
    return words;
}

/// No waiter is late in the time that a test takes, so that the answers don't depend on it.
command queue_command(chance& from)
{
    static constexpr std::array<std::string_view, 3> members{"a:1", "b:2", "-c:3"};
    static constexpr std::array<std::string_view, 3> modes{"released", "left", "lost"};
    constexpr const char* long_time = "1000000";
    const bool asks = from.in_percent(60);
    const net::script& which = asks ? net::ask_script : net::release_to_queue_script;
    const bool by_text = from.in_percent(25);
    command words{
        by_text ? "EVAL" : "EVALSHA", std::string{by_text ? which.text : which.sha1}, "1", from.one_of(keys)};
    if (asks)
    {
        const std::string member = from.one_of(members);
        words.insert(
            words.end(), {member, from.one_of(owners), from.one_of(ttls), from.one_of(ttls),
                          from.in_percent(80) ? long_time : "0", long_time});
        return words;
    }
    words.insert(words.end(), {from.one_of(owners), long_time});
    if (from.in_percent(70))
    {
        words.insert(
            words.end(), {from.one_of(modes), from.one_of(members), from.one_of(ttls), long_time, "1000"});
    }
    return words;
}

command script_command(chance& from)
{
    static constexpr std::array<std::string_view, 8> counts{"1", "1", "1", "1", "1", "0", "2", "x"};
    if (from.in_percent(25))
    {
        return queue_command(from);
    }
    const bool extends = from.in_percent(50);
    const net::script& which = extends ? net::extend_script : net::release_script;
    const bool by_text = from.in_percent(25);
    command words{
        by_text ? "EVAL" : "EVALSHA", std::string{by_text ? which.text : which.sha1},
        from.in_percent(80) ? "1" : from.one_of(counts), from.one_of(keys), from.one_of(owners)};
    if (extends)
    {
        words.push_back(ttl_of(from));
    }
    return words;
}

bool logs_in(const command& words)
{
    return name_of(words) == "AUTH" ||
           (name_of(words) == "HELLO" &&
            std::any_of(
                words.begin(), words.end(), [](const auto& each) { return name_of({each}) == "AUTH"; }));
}

/// An error alongside a password is found before it by Redis 8, and after it by Redis 7: nothing is then.
command hello_command(chance& from)
{
    static constexpr std::array<std::string_view, 8> versions{"2", "3", "3", "2", "3", "4", "x", ""};
    command words{"HELLO"};
    if (from.in_percent(90))
    {
        words.push_back(from.one_of(versions));
    }
    if (words.size() == 2 && from.in_percent(50))
    {
        words.insert(words.end(), {"AUTH", from.one_of(users), from.one_of(passwords)});
    }
    if (words.size() > 1 && from.in_percent(20))
    {
        const bool fine = logs_in(words) || from.in_percent(80);
        words.insert(words.end(), {"setname", fine ? "somebody" : "some body"});
    }
    return words;
}

command auth_command(chance& from)
{
    command words{"AUTH", from.one_of(passwords)};
    if (from.in_percent(40))
    {
        words.insert(words.begin() + 1, from.one_of(users));
    }
    return words;
}

command client_command(chance& from, client_ids of)
{
    static constexpr std::array<std::string_view, 4> names{"redlock", "a b", "", "\n"};
    static constexpr std::array<std::string_view, 5> nobody{
        "9223372036854775807", "0", "-1", "x", "123456789"};
    const auto recent = static_cast<std::int64_t>(from.below(6));
    switch (from.below(4))
    {
    case 0:
        return {"CLIENT", "ID"};
    case 1:
        return {"CLIENT", "SETNAME", from.one_of(names)};
    case 2:
        return {"CLIENT", "KILL", "ID", from.one_of(nobody)};
    default:
        return {"CLIENT", "KILL", "ID", std::to_string(std::max(of.first, of.last - recent))};
    }
}

command cache_command(chance& from)
{
    static constexpr std::array<std::string_view, 4> how{"sync", "ASYNC", "x", ""};
    if (from.in_percent(70))
    {
        return {
            "SCRIPT", "LOAD",
            from.one_of(std::array{
                net::extend_script.text, net::release_script.text, net::ask_script.text,
                net::release_to_queue_script.text})};
    }
    return from.in_percent(50) ? command{"SCRIPT", "FLUSH"} : command{"SCRIPT", "FLUSH", from.one_of(how)};
}

command question(chance& from)
{
    static constexpr std::array<std::string_view, 4> sections{"server", "MEMORY", "replication", "nothing"};
    static constexpr std::array<std::string_view, 5> databases{"0", "-1", "16", "x", ""};
    switch (from.below(6))
    {
    case 0:
        return {"TIME"};
    case 1:
        return {"INFO"};
    case 2:
        return {"info", from.one_of(sections), from.one_of(sections)};
    case 3:
        return {"INFO", from.one_of(sections)};
    case 4:
        return {"SELECT", from.one_of(databases)};
    default:
        return inspection(from.one_of(keys));
    }
}

command unknown(chance& from)
{
    static constexpr std::array<std::string_view, 4> names{"LOCK", "", "SETS", "\r\n"};
    static constexpr std::array<std::string_view, 3> parts{"FOO", "", "IDS"};
    if (from.in_percent(30))
    {
        return {from.in_percent(50) ? "CLIENT" : "script", from.one_of(parts)};
    }
    command words{from.one_of(names)};
    for (std::size_t left = from.below(4); left > 0; --left)
    {
        words.push_back(std::string(from.below(80), 'z'));
    }
    return words;
}

/// A word is missing, one is too many, or one is wrong. Not a script: that is a program.
void spoil(command& words, chance& from)
{
    const std::string name = name_of(words);
    const bool has_script = name == "EVAL" || (name == "SCRIPT" && words.size() > 2);
    switch (from.below(3))
    {
    case 0:
        words.resize(words.size() > 1 ? words.size() - 1 : 1);
        break;
    case 1:
        words.push_back(from.one_of(wrong_words));
        break;
    default:
        const std::size_t which = from.below(words.size());
        if (!has_script || which > 2)
        {
            words[which] = from.one_of(wrong_words);
        }
    }
}

command right_command(chance& from, client_ids of)
{
    const std::size_t which = from.below(100);
    return which < 30   ? set_command(from)
           : which < 60 ? script_command(from)
           : which < 70 ? hello_command(from)
           : which < 80 ? client_command(from, of)
           : which < 86 ? cache_command(from)
           : which < 96 ? question(from)
                        : unknown(from);
}

} // namespace

command random_command(chance& from, client_ids of)
{
    command words;
    do
    {
        words = right_command(from, of);
        if (from.in_percent(10))
        {
            spoil(words, from);
        }
    } while (logs_in(words));
    return words;
}

command random_log_in(chance& from)
{
    command words;
    do
    {
        words = from.in_percent(50) ? hello_command(from) : auth_command(from);
        if (words.front() == "AUTH" && from.in_percent(20))
        {
            spoil(words, from);
        }
    } while (!logs_in(words));
    return words;
}

command short_set(chance& from, const std::string& key)
{
    return {"SET", key, from.one_of(owners), "NX", "PX", std::to_string(1 + from.below(3))};
}

command inspection(const std::string& key)
{
    return {"EVAL", std::string{net::inspect_script}, "1", key};
}

std::string as_bytes(const command& words)
{
    const std::vector<std::string_view> views{words.begin(), words.end()};
    std::string out;
    resp::append_command(out, views);
    return out;
}

} // namespace redlock::test
