// SPDX-License-Identifier: BSL-1.0
// Scripts in Lua 5.1, as Redis 7.0 runs them: its conversions, its words for errors, and no new globals.
#include "lua_scripts.hpp"

#include "support/sha1.hpp"

#include <fmt/format.h>
#include <lua.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::test
{

namespace
{

std::string text_at(lua_State* lua, int index)
{
    std::size_t size = 0;
    const char* const bytes = lua_tolstring(lua, index, &size);
    return bytes != nullptr ? std::string{bytes, size} : std::string{};
}

void push(lua_State* lua, std::string_view text)
{
    lua_pushlstring(lua, text.data(), text.size());
}

void push_field(lua_State* lua, const char* name, std::string_view text)
{
    lua_newtable(lua);
    push(lua, text);
    lua_setfield(lua, -2, name);
}

void push(lua_State* lua, const reply_value& value)
{
    switch (value.what)
    {
    case reply_value::kind::null:
        lua_pushboolean(lua, 0);
        break;
    case reply_value::kind::status:
        push_field(lua, "ok", value.text);
        break;
    case reply_value::kind::error:
        push_field(lua, "err", value.text);
        break;
    case reply_value::kind::integer:
        lua_pushnumber(lua, static_cast<lua_Number>(value.number));
        break;
    case reply_value::kind::text:
        push(lua, value.text);
        break;
    case reply_value::kind::array:
        lua_createtable(lua, static_cast<int>(value.items.size()), 0);
        for (std::size_t at = 0; at < value.items.size(); ++at)
        {
            push(lua, value.items[at]);
            lua_rawseti(lua, -2, static_cast<int>(at) + 1);
        }
        break;
    }
}

void push(lua_State* lua, const std::vector<std::string>& texts)
{
    lua_createtable(lua, static_cast<int>(texts.size()), 0);
    for (std::size_t at = 0; at < texts.size(); ++at)
    {
        push(lua, std::string_view{texts[at]});
        lua_rawseti(lua, -2, static_cast<int>(at) + 1);
    }
}

/// A text field of the table on the top of the stack; empty if it has none.
std::string field(lua_State* lua, const char* name)
{
    lua_getfield(lua, -1, name);
    const std::string text = lua_isstring(lua, -1) != 0 ? text_at(lua, -1) : std::string{};
    lua_pop(lua, 1);
    return text;
}

/// Cuts a number as the processor of a server does: what doesn't fit becomes the least number.
std::int64_t whole(lua_Number number)
{
    constexpr lua_Number end = 9223372036854775808.0; // 2^63
    return number >= -end && number < end ? static_cast<std::int64_t>(number)
                                          : std::numeric_limits<std::int64_t>::min();
}

/// Converts the value on the top of the stack to a reply.
reply_value pop_reply(lua_State* lua)
{
    reply_value value;
    switch (lua_type(lua, -1))
    {
    case LUA_TSTRING:
        value = reply_value::bulk(text_at(lua, -1));
        break;
    case LUA_TNUMBER:
        value = reply_value::integer(whole(lua_tonumber(lua, -1)));
        break;
    case LUA_TBOOLEAN:
        value = lua_toboolean(lua, -1) != 0 ? reply_value::integer(1) : reply_value{};
        break;
    case LUA_TTABLE:
        if (std::string text = field(lua, "err"); !text.empty())
        {
            value = reply_value::error(std::move(text));
            break;
        }
        if (std::string text = field(lua, "ok"); !text.empty())
        {
            value = reply_value::status(std::move(text));
            break;
        }
        value.what = reply_value::kind::array;
        for (int at = 1;; ++at)
        {
            lua_rawgeti(lua, -1, at);
            if (lua_isnil(lua, -1))
            {
                lua_pop(lua, 1);
                break;
            }
            value.items.push_back(pop_reply(lua));
        }
        break;
    default:
        break;
    }
    lua_pop(lua, 1);
    return value;
}

/// The line of the script that calls, for the words of an error.
int calling_line(lua_State* lua)
{
    lua_Debug where{};
    return lua_getstack(lua, 1, &where) != 0 && lua_getinfo(lua, "l", &where) != 0 ? where.currentline : 0;
}

const script_call*& current(lua_State* lua)
{
    lua_getfield(lua, LUA_REGISTRYINDEX, "current");
    auto* const slot = static_cast<const script_call**>(lua_touserdata(lua, -1));
    lua_pop(lua, 1);
    return *slot;
}

/// Reads the arguments of redis.call. Returns false if one is neither a text nor a number.
bool read_arguments(lua_State* lua, command& words)
{
    for (int at = 1; at <= lua_gettop(lua); ++at)
    {
        const int type = lua_type(lua, at);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
        {
            return false;
        }
        words.push_back(
            type == LUA_TNUMBER ? fmt::format("{:.17g}", lua_tonumber(lua, at)) : text_at(lua, at));
    }
    return true;
}

/// Runs a command and pushes its reply. Returns whether that is an error.
bool run_command(lua_State* lua)
{
    command words;
    const reply_value value =
        lua_gettop(lua) == 0
            ? reply_value::error("ERR Please specify at least one argument for this redis.call() call")
        : read_arguments(lua, words)
            ? current(lua)->run(words)
            : reply_value::error("ERR Lua redis lib command arguments must be strings or integers");
    push(lua, value);
    return value.is_error();
}

// No object with a destructor may be alive in a function that calls lua_error.

int call(lua_State* lua)
{
    if (run_command(lua))
    {
        lua_pushinteger(lua, calling_line(lua));
        lua_setfield(lua, -2, "line");
        return lua_error(lua);
    }
    return 1;
}

int pcall(lua_State* lua)
{
    run_command(lua);
    return 1;
}

int error_reply(lua_State* lua)
{
    const std::string text = text_at(lua, 1);
    push_field(lua, "err", text);
    return 1;
}

int status_reply(lua_State* lua)
{
    const std::string text = text_at(lua, 1);
    push_field(lua, "ok", text);
    return 1;
}

int sha1hex(lua_State* lua)
{
    const std::string digest = sha1_hex(text_at(lua, 1));
    push(lua, std::string_view{digest});
    return 1;
}

int refuse_new_global(lua_State* lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

int refuse_unknown_global(lua_State* lua)
{
    return luaL_error(
        lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

/// An interpreter with the compiled scripts.
class interpreter
{
  public:
    interpreter() : state_{luaL_newstate(), &lua_close}
    {
        lua_State* const lua = state_.get();
        if (lua == nullptr)
        {
            throw std::bad_alloc{};
        }
        constexpr std::array<std::pair<const char*, lua_CFunction>, 4> libraries{
            {{"", &luaopen_base},
             {LUA_TABLIBNAME, &luaopen_table},
             {LUA_STRLIBNAME, &luaopen_string},
             {LUA_MATHLIBNAME, &luaopen_math}}};
        for (const auto& [name, open] : libraries)
        {
            lua_pushcfunction(lua, open);
            lua_pushstring(lua, name);
            lua_call(lua, 1, 0);
        }
        lua_newtable(lua);
        constexpr std::array<std::pair<const char*, lua_CFunction>, 5> functions{
            {{"call", &call},
             {"pcall", &pcall},
             {"error_reply", &error_reply},
             {"status_reply", &status_reply},
             {"sha1hex", &sha1hex}}};
        for (const auto& [name, function] : functions)
        {
            lua_pushcfunction(lua, function);
            lua_setfield(lua, -2, name);
        }
        lua_setglobal(lua, "redis");
        lua_newtable(lua);
        lua_pushcfunction(lua, &refuse_new_global);
        lua_setfield(lua, -2, "__newindex");
        lua_pushcfunction(lua, &refuse_unknown_global);
        lua_setfield(lua, -2, "__index");
        lua_setmetatable(lua, LUA_GLOBALSINDEX);
        lua_pushlightuserdata(lua, &current_);
        lua_setfield(lua, LUA_REGISTRYINDEX, "current");
    }

    reply_value run(const script_call& what)
    {
        lua_State* const lua = state_.get();
        if (!push_compiled(what))
        {
            return reply_value::error(
                fmt::format("ERR Error compiling script (new function): {}", pop_text()));
        }
        set_global("KEYS", what.keys);
        set_global("ARGV", what.arguments);
        current_ = &what;
        const int failed = lua_pcall(lua, 0, 1, 0);
        current_ = nullptr;
        return failed == 0 ? pop_reply(lua) : pop_error(what.digest);
    }

  private:
    std::string pop_text()
    {
        std::string text = text_at(state_.get(), -1);
        lua_pop(state_.get(), 1);
        return text;
    }

    bool push_compiled(const script_call& what)
    {
        lua_State* const lua = state_.get();
        const auto found = compiled_.find(what.digest);
        if (found != compiled_.end())
        {
            lua_rawgeti(lua, LUA_REGISTRYINDEX, found->second);
            return true;
        }
        if (luaL_loadbuffer(lua, what.text.data(), what.text.size(), "@user_script") != 0)
        {
            return false;
        }
        lua_pushvalue(lua, -1);
        compiled_.emplace(what.digest, luaL_ref(lua, LUA_REGISTRYINDEX));
        return true;
    }

    void set_global(const char* name, const std::vector<std::string>& values)
    {
        lua_State* const lua = state_.get();
        lua_pushstring(lua, name);
        push(lua, values);
        lua_rawset(lua, LUA_GLOBALSINDEX);
    }

    /// The error of a command that was raised, or of Lua, whose text begins with "user_script:<line>:".
    reply_value pop_error(const std::string& digest)
    {
        lua_State* const lua = state_.get();
        std::string text;
        std::string line;
        if (lua_istable(lua, -1))
        {
            text = field(lua, "err");
            line = field(lua, "line");
            lua_pop(lua, 1);
        }
        else
        {
            text = pop_text();
            const std::size_t begin = text.find(':') + 1;
            line = text.substr(begin, text.find(':', begin) - begin);
            text = "ERR " + text;
        }
        return reply_value::error(fmt::format("{} script: {}, on @user_script:{}.", text, digest, line));
    }

    const script_call* current_ = nullptr;
    std::unique_ptr<lua_State, decltype(&lua_close)> state_;
    std::map<std::string, int> compiled_; // By their digests.
};

} // namespace

reply_value run_script(const script_call& what)
{
    thread_local interpreter lua;
    return lua.run(what);
}

} // namespace redlock::test
