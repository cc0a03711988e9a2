// SPDX-License-Identifier: BSL-1.0
// Scripts that try whether a server refuses commands, in forms that change nothing. They run rarely, and are always sent in
// full. Each returns an empty text, or the first refusal with the name of the command.
#pragma once

#include "net/script_text.hpp"

#include <string_view>

namespace redlock::net
{

/// Tries one command. A server refuses it for its name, its user, its memory or its disk before it reads the arguments.
inline constexpr char trial_common[] = R"lua(local refusal
local function try(command, ...)
  local answer = redis.pcall(command, ...)
  local why = type(answer) == "table" and answer.err
  if not why or string.find(why, "syntax error", 1, true) or string.find(why, "wrong number", 1, true) then return end
  refusal = refusal or redis.error_reply(why .. " (" .. command .. ")")
end
)lua";

/// Tries the commands with which a run of provisioning changes a master without a marker.
///
/// Keys: the record of the members, the marker, the counters, the groups that were replaced.
inline constexpr auto provision_trial_text = join(
    trial_common,
    R"lua(try("SET", KEYS[2], "", "NX", "XX")
try("HSET", KEYS[3], "floor", "0", "")
if redis.pcall("get", KEYS[4]) == false then try("DEL", KEYS[4]) end
return refusal or "")lua");
inline constexpr std::string_view provision_trial_script{
    provision_trial_text.data(), provision_trial_text.size()};

/// Tries the commands with which an armed master votes, except those that locks without a group need as well.
///
/// Keys: the marker, the counters.
inline constexpr auto vote_trial_text = join(
    trial_common,
    R"lua(try("INFO", "replication")
try("TIME")
try("HMGET", KEYS[2], "floor")
try("HSET", KEYS[2], "floor", "0", "")
return refusal or "")lua");
inline constexpr std::string_view vote_trial_script{vote_trial_text.data(), vote_trial_text.size()};

} // namespace redlock::net
