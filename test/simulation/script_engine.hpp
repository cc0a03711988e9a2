// SPDX-License-Identifier: BSL-1.0
// Runs scripts as a server does: in Lua 5.1, with the functions of Redis 7.0.
#pragma once

#include "support/request_reader.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct lua_State;

namespace redlock::test
{

/// A script that was compiled, or its error.
struct compiled_script
{
    std::string digest; // SHA-1.
    std::string error;  // A reply. Empty if the script can run.
    int function = 0;   // Its reference in the interpreter.
};

/// A Lua interpreter with the environment of scripts. Scripts can't change anything that another one sees, so that one
/// interpreter serves all masters, and a run doesn't depend on earlier ones.
///
/// Not provided: libraries other than string, table and math; functions that access metatables or environments; the
/// conversion of RESP3 types; functions of `redis` other than call, pcall, error_reply, status_reply and sha1hex.
class script_engine
{
  public:
    /// Executes a command of a script, and returns its reply in RESP2.
    using executor = std::function<std::string(const command& words)>;
    struct arguments
    {
        const std::vector<std::string>& keys;
        const std::vector<std::string>& others;
    };

    /// Returns the interpreter of this thread.
    static script_engine& of_this_thread();

    script_engine();
    ~script_engine();
    script_engine(const script_engine&) = delete;
    script_engine& operator=(const script_engine&) = delete;

    /// Compiles a script, unless it is known. The result is valid as long as this object.
    const compiled_script& compile(const std::string& text);
    /// Runs a script that has no error. Returns its reply, in the protocol of the client (2 or 3).
    std::string
    run(const compiled_script& script, const arguments& given, const executor& execute, int protocol);

  private:
    struct close_state
    {
        void operator()(lua_State* state) const noexcept;
    };

    void make_environment();
    void set_global(const char* name, const std::vector<std::string>& values);
    std::string error_reply(const compiled_script& script);
    static int call(lua_State* state);
    static int protected_call(lua_State* state);
    static bool execute(lua_State* state);

    std::unique_ptr<lua_State, close_state> state_;
    int environment_ = 0; // What scripts see.
    int globals_ = 0;     // What is behind it.
    std::unordered_map<std::string, compiled_script> known_;
    const executor* execute_ = nullptr; // Of the script that runs.
    std::exception_ptr thrown_;         // By its commands.
};

} // namespace redlock::test
