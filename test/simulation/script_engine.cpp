// SPDX-License-Identifier: BSL-1.0
// Lua reports errors with longjmp: no function that may raise one has a local object with a destructor at that point.
// The texts of errors are those of redis-server 7.0.
#include "script_engine.hpp"

#include "support/fake_replies.hpp"
#include "support/sha1.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <lua.hpp>

namespace redlock::test
{

namespace
{

std::string_view text_at(lua_State* state, int index)
{
    std::size_t size = 0;
    const char* const bytes = lua_tolstring(state, index, &size);
    return {bytes, size};
}

void push(lua_State* state, std::string_view text)
{
    lua_pushlstring(state, text.data(), text.size());
}

void push_field(lua_State* state, const char* name, std::string_view text)
{
    lua_newtable(state);
    push(state, text);
    lua_setfield(state, -2, name);
}

/// An error without a code, or a reply: "-CODE text". Without a text, the code becomes the text.
void push_error(lua_State* state, std::string_view error)
{
    const bool has_code = error.starts_with('-') && error.find(' ') != std::string_view::npos;
    error.remove_prefix(error.starts_with('-') ? 1 : 0);
    push_field(state, "err", has_code ? std::string{error} : "ERR " + std::string{error});
}

/// Removes one line from a reply, and returns it without its end.
std::string_view cut_line(std::string_view& reply)
{
    const std::size_t end = reply.find("\r\n");
    const std::string_view line = reply.substr(0, end);
    reply.remove_prefix(end + 2);
    return line;
}

/// Removes one reply in RESP2 from the text, and pushes it as a script sees it.
void push_reply(lua_State* state, std::string_view& reply)
{
    const std::string_view line = cut_line(reply);
    const std::string_view rest = line.substr(1);
    const std::int64_t number = integer_in(rest).value_or(0);
    switch (line.front())
    {
    case '+':
        push_field(state, "ok", rest);
        return;
    case '-':
        push_error(state, line);
        return;
    case ':':
        lua_pushnumber(state, static_cast<lua_Number>(number));
        return;
    default:
        break;
    }
    if (number < 0)
    {
        lua_pushboolean(state, 0);
    }
    else if (line.front() == '$')
    {
        push(state, reply.substr(0, static_cast<std::size_t>(number)));
        reply.remove_prefix(static_cast<std::size_t>(number) + 2);
    }
    else
    {
        lua_newtable(state);
        for (int at = 1; at <= number; ++at)
        {
            push_reply(state, reply);
            lua_rawseti(state, -2, at);
        }
    }
}

/// The arguments of redis.call; empty if one of them is neither a string nor a number.
std::optional<command> words_on(lua_State* state)
{
    command words;
    for (int at = 1; at <= lua_gettop(state); ++at)
    {
        const int type = lua_type(state, at);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
        {
            return std::nullopt;
        }
        words.push_back(
            type == LUA_TNUMBER ? fmt::format("{:.17g}", lua_tonumber(state, at))
                                : std::string{text_at(state, at)});
    }
    return words;
}

/// redis.error_reply and redis.status_reply: a table with the text in one field.
int make_error_reply(lua_State* state)
{
    if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING)
    {
        push_error(state, "wrong number or type of arguments");
        return 1;
    }
    const std::string_view text = text_at(state, 1);
    push_error(state, text.starts_with('-') ? std::string{text} : "-" + std::string{text});
    return 1;
}

int make_status_reply(lua_State* state)
{
    if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING)
    {
        push_error(state, "wrong number or type of arguments");
        return 1;
    }
    push_field(state, "ok", text_at(state, 1));
    return 1;
}

int push_sha1(lua_State* state)
{
    if (lua_gettop(state) != 1)
    {
        push_error(state, "wrong number of arguments");
        return lua_error(state);
    }
    // A number is converted, as by Lua's own functions; anything else is empty.
    push(state, sha1_hex(text_at(state, 1)));
    return 1;
}

/// pcall: the error of a command is its text.
int protect(lua_State* state)
{
    luaL_checkany(state, 1);
    const int failed = lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0);
    if (failed != 0 && lua_istable(state, -1))
    {
        lua_getfield(state, -1, "err");
        lua_replace(state, -2);
    }
    lua_pushboolean(state, failed == 0 ? 1 : 0);
    lua_insert(state, 1);
    return lua_gettop(state);
}

int refuse_change(lua_State* state)
{
    return luaL_error(state, "Attempt to modify a readonly table");
}

int refuse_unknown(lua_State* state)
{
    return luaL_error(
        state, "Script attempted to access nonexistent global variable '%s'", lua_tostring(state, 2));
}

/// Adds to an error where it was raised.
int locate_error(lua_State* state)
{
    if (!lua_istable(state, 1))
    {
        push_error(state, lua_isstring(state, 1) != 0 ? text_at(state, 1) : "unknown error");
        lua_replace(state, 1);
    }
    lua_Debug where{};
    for (int level = 1; level <= 2 && lua_getstack(state, level, &where) != 0; ++level)
    {
        lua_getinfo(state, "Sl", &where);
        if (*where.what != 'C')
        {
            lua_pushfstring(state, "%s:%d", where.source, where.currentline);
            lua_setfield(state, 1, "where");
            break;
        }
    }
    lua_settop(state, 1);
    return 1;
}

/// Replaces the table on the top by an empty one through which it can be read only.
void make_readonly(lua_State* state)
{
    lua_newtable(state);
    lua_newtable(state);
    lua_pushvalue(state, -3);
    lua_setfield(state, -2, "__index");
    lua_pushcfunction(state, refuse_change);
    lua_setfield(state, -2, "__newindex");
    lua_setmetatable(state, -2);
    lua_remove(state, -2);
}

/// Returns the text of a field of the table on the top; empty if there is none.
std::optional<std::string> field(lua_State* state, const char* name)
{
    lua_pushstring(state, name);
    lua_rawget(state, -2);
    std::optional<std::string> found;
    if (lua_type(state, -1) == LUA_TSTRING)
    {
        found = text_at(state, -1);
    }
    lua_pop(state, 1);
    return found;
}

std::string line_of(char mark, std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char each) { return each == '\r' || each == '\n'; }, ' ');
    return mark + text + "\r\n";
}

/// Truncates, as the conversion instruction of x86-64 does.
std::int64_t whole(lua_Number number)
{
    constexpr lua_Number bound = 9223372036854775808.0;
    return number >= -bound && number < bound ? static_cast<std::int64_t>(number)
                                              : std::numeric_limits<std::int64_t>::min();
}

/// Appends the value on the top as a reply, and removes it.
void append_reply(lua_State* state, std::string& out, int protocol)
{
    const auto done = [&](std::string_view reply)
    {
        out += reply;
        lua_pop(state, 1);
    };
    if (lua_checkstack(state, 4) == 0)
    {
        return done("-ERR reached lua stack limit\r\n");
    }
    switch (lua_type(state, -1))
    {
    case LUA_TSTRING:
        return done(bulk(text_at(state, -1)));
    case LUA_TNUMBER:
        return done(number(whole(lua_tonumber(state, -1))));
    case LUA_TBOOLEAN:
        if (lua_toboolean(state, -1) != 0)
        {
            return done(number(1));
        }
        break;
    case LUA_TTABLE:
    {
        if (const auto error = field(state, "err"))
        {
            return done(line_of('-', *error));
        }
        if (const auto status = field(state, "ok"))
        {
            return done(line_of('+', *status));
        }
        std::string elements;
        int count = 0;
        for (lua_rawgeti(state, -1, 1); !lua_isnil(state, -1); lua_rawgeti(state, -1, count + 1))
        {
            append_reply(state, elements, protocol);
            ++count;
        }
        lua_pop(state, 1);
        return done(fmt::format("*{}\r\n{}", count, elements));
    }
    default:
        break;
    }
    done(protocol == 3 ? "_\r\n" : "$-1\r\n");
}

} // namespace

void script_engine::close_state::operator()(lua_State* state) const noexcept
{
    lua_close(state);
}

script_engine& script_engine::of_this_thread()
{
    thread_local script_engine engine;
    return engine;
}

script_engine::script_engine() : state_{luaL_newstate()}
{
    make_environment();
}

script_engine::~script_engine() = default;

void script_engine::make_environment()
{
    lua_State* const state = state_.get();
    for (const lua_CFunction open : {luaopen_base, luaopen_string, luaopen_table, luaopen_math})
    {
        lua_pushcfunction(state, open);
        lua_call(state, 0, 0);
    }
    lua_newtable(state);
    for (const char* const each : {"string", "table", "math"})
    {
        lua_getglobal(state, each);
        make_readonly(state);
        lua_setfield(state, -2, each);
    }
    for (const char* const each :
         {"assert", "error", "ipairs", "next", "pairs", "rawequal", "rawget", "select", "tonumber",
          "tostring", "type", "unpack"})
    {
        lua_getglobal(state, each);
        lua_setfield(state, -2, each);
    }
    lua_pushcfunction(state, protect);
    lua_setfield(state, -2, "pcall");

    lua_newtable(state);
    const auto add = [&](const char* name, lua_CFunction function)
    {
        lua_pushlightuserdata(state, this);
        lua_pushcclosure(state, function, 1);
        lua_setfield(state, -2, name);
    };
    add("call", call);
    add("pcall", protected_call);
    add("error_reply", make_error_reply);
    add("status_reply", make_status_reply);
    add("sha1hex", push_sha1);
    make_readonly(state);
    lua_setfield(state, -2, "redis");

    lua_newtable(state);
    lua_pushcfunction(state, refuse_unknown);
    lua_setfield(state, -2, "__index");
    lua_setmetatable(state, -2);
    lua_pushvalue(state, -1);
    globals_ = luaL_ref(state, LUA_REGISTRYINDEX);
    make_readonly(state);
    environment_ = luaL_ref(state, LUA_REGISTRYINDEX);
}

const compiled_script& script_engine::compile(const std::string& text)
{
    const auto known = known_.find(text);
    if (known != known_.end())
    {
        return known->second;
    }
    lua_State* const state = state_.get();
    compiled_script made{sha1_hex(text), {}, 0};
    if (luaL_loadbuffer(state, text.data(), text.size(), "@user_script") != 0)
    {
        made.error =
            line_of('-', fmt::format("ERR Error compiling script (new function): {}", text_at(state, -1)));
        lua_pop(state, 1);
    }
    else
    {
        lua_rawgeti(state, LUA_REGISTRYINDEX, environment_);
        lua_setfenv(state, -2);
        made.function = luaL_ref(state, LUA_REGISTRYINDEX);
    }
    return known_.emplace(text, std::move(made)).first->second;
}

void script_engine::set_global(const char* name, const std::vector<std::string>& values)
{
    lua_State* const state = state_.get();
    lua_rawgeti(state, LUA_REGISTRYINDEX, globals_);
    lua_createtable(state, static_cast<int>(values.size()), 0);
    int at = 0;
    for (const std::string& each : values)
    {
        push(state, each);
        lua_rawseti(state, -2, ++at);
    }
    lua_setfield(state, -2, name);
    lua_pop(state, 1);
}

std::string script_engine::run(
    const compiled_script& script, const arguments& given, const executor& execute, int protocol)
{
    lua_State* const state = state_.get();
    set_global("KEYS", given.keys);
    set_global("ARGV", given.others);
    lua_pushcfunction(state, locate_error);
    lua_rawgeti(state, LUA_REGISTRYINDEX, script.function);
    execute_ = &execute;
    const int failed = lua_pcall(state, 0, 1, -2);
    execute_ = nullptr;
    std::string reply;
    if (failed != 0)
    {
        reply = error_reply(script);
    }
    else
    {
        append_reply(state, reply, protocol);
    }
    lua_settop(state, 0);
    if (thrown_)
    {
        std::rethrow_exception(std::exchange(thrown_, nullptr));
    }
    return reply;
}

std::string script_engine::error_reply(const compiled_script& script)
{
    lua_State* const state = state_.get();
    if (!lua_istable(state, -1)) // There was no memory to handle the error.
    {
        return line_of('-', fmt::format("ERR Error running script {}", script.digest));
    }
    const std::optional<std::string> where = field(state, "where");
    return line_of(
        '-', fmt::format(
                 "{} script: {}{}", field(state, "err").value_or("ERR unknown error"), script.digest,
                 where ? fmt::format(", on {}.", *where) : ""));
}

/// Pushes the result of a command. Returns false for an error.
bool script_engine::execute(lua_State* state)
{
    auto& self = *static_cast<script_engine*>(lua_touserdata(state, lua_upvalueindex(1)));
    try
    {
        const std::optional<command> words = words_on(state);
        if (!words)
        {
            push_error(state, "Lua redis lib command arguments must be strings or integers");
        }
        else if (words->empty())
        {
            push_error(state, "Please specify at least one argument for this redis lib call");
        }
        else
        {
            const std::string reply = (*self.execute_)(*words);
            std::string_view left = reply;
            push_reply(state, left);
            return reply.front() != '-';
        }
    }
    catch (...) // Which must not pass through Lua.
    {
        self.thrown_ = std::current_exception();
        push_error(state, "the simulation has failed");
    }
    return false;
}

/// redis.call: errors are raised.
int script_engine::call(lua_State* state)
{
    return execute(state) ? 1 : lua_error(state);
}

/// redis.pcall: errors are returned.
int script_engine::protected_call(lua_State* state)
{
    execute(state);
    return 1;
}

} // namespace redlock::test
