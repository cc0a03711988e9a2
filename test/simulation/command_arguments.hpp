// SPDX-License-Identifier: BSL-1.0
// The arguments of commands, as a server parses them, and its errors for invalid ones.
#pragma once

#include "support/request_reader.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

inline constexpr const char* no_integer = "-ERR value is not an integer or out of range\r\n";

/// Returns a server's error for an unknown command.
std::string unknown_command(const command& words);
/// Returns the error for too few or too many words, or an unknown second word; empty if the command may run.
std::optional<std::string> refusal_of(const command& words);
/// Returns the error for an invalid client name; empty if it is valid.
std::optional<std::string> refusal_of_name(std::string_view name);

// Each of these has an error, or is complete.

/// HELLO [protocol [AUTH user password] [SETNAME name]]. With an error it has what stands in front of that.
struct hello_arguments
{
    explicit hello_arguments(const command& words);

    std::string error{};
    std::optional<int> protocol{};
    std::optional<std::string> user{};
    std::string password{};
};

/// SET key value [NX | XX] [PX milliseconds | PXAT milliseconds since 1970], of which the last is for a mutant. Other
/// options are not simulated: they are refused as wrong.
struct set_arguments
{
    explicit set_arguments(const command& words);

    std::string error{};
    bool only_new = false;
    bool only_existing = false;
    std::optional<std::chrono::milliseconds> ttl{};
    bool at_that_time = false; // The number is the time of the expiry, not a time to live.
};

/// EVAL script number-of-keys key... argument..., and EVALSHA.
struct script_arguments
{
    explicit script_arguments(const command& words);

    std::string error{};
    std::vector<std::string> keys{};
    std::vector<std::string> arguments{};
};

/// CLIENT KILL ID id. Other filters are not simulated: they are refused as wrong.
struct kill_arguments
{
    explicit kill_arguments(const command& words);

    std::string error{};
    std::int64_t id = 0;
};

} // namespace redlock::test
