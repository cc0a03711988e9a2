// SPDX-License-Identifier: BSL-1.0
// Runs scripts as a server does: in Lua 5.1, with redis.call and its relatives.
#pragma once

#include "reply_value.hpp"
#include "support/request_reader.hpp"

#include <functional>
#include <string>
#include <vector>

namespace redlock::test
{

/// What a script needs of its server.
struct script_call
{
    const std::string& text;
    const std::string& digest;
    const std::vector<std::string>& keys;
    const std::vector<std::string>& arguments;
    /// Runs a command for redis.call and redis.pcall.
    std::function<reply_value(const command&)> run;
};

/// Runs a script. Each text is compiled once in a thread.
reply_value run_script(const script_call& what);

} // namespace redlock::test
