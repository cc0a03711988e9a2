// SPDX-License-Identifier: BSL-1.0
// Scripts that try whether a server refuses commands, in forms that change nothing. They run rarely, and are always sent in
// full.
#pragma once

#include "net/script_text.hpp"

#include <string_view>

namespace redlock::net
{

/// Tries one command, and returns its name and the refusal, or what was found before. A server refuses a command for its name,
/// its user, its memory or its disk before it reads the arguments.
inline constexpr char trial_common[] = R"lua(local function try(before, command, ...)
  local answer = redis.pcall(command, ...)
  local why = type(answer) == "table" and answer.err
  if not why or string.find(why, "syntax error", 1, true) or string.find(why, "wrong number", 1, true) then return before end
  return before or {command, why}
end
)lua";

/// Tries the commands with which a run of provisioning changes a master without a marker.
///
/// Keys: the record of the members, the marker, the counters, the groups that were replaced. Argument: the number of the
/// database. Returns an empty text, or the first refusal with the name of the command.
inline constexpr auto provision_trial_text = join(
    trial_common,
    R"lua(local refused = try(nil, "SET", KEYS[2], "", "NX", "XX")
refused = try(refused, "HSET", KEYS[3], "floor", "0", "")
refused = try(refused, "SELECT", ARGV[1])
if redis.pcall("get", KEYS[4]) == false then refused = try(refused, "DEL", KEYS[4]) end
return refused and redis.error_reply(refused[2] .. " (" .. refused[1] .. ")") or "")lua");
inline constexpr std::string_view provision_trial_script{
    provision_trial_text.data(), provision_trial_text.size()};

/// Tries the commands with which a master of a group votes, except those that locks without a group need as well, and those by
/// which a client arms it.
///
/// Keys: the marker, the counters. Argument: the number of the database. Returns an array: the command of a vote that was
/// refused and the error, the command of arming and the error; empty texts for none.
inline constexpr auto vote_trial_text = join(
    trial_common,
    R"lua(local vote = try(nil, "INFO", "replication")
vote = try(vote, "TIME")
vote = try(vote, "HMGET", KEYS[2], "floor")
vote = try(vote, "HSET", KEYS[2], "floor", "0", "")
local arming = try(nil, "SET", KEYS[1], "", "NX", "XX")
arming = try(arming, "HVALS", KEYS[2])
arming = try(arming, "SELECT", ARGV[1])
return {vote and vote[1] or "", vote and vote[2] or "", arming and arming[1] or "", arming and arming[2] or ""})lua");
inline constexpr std::string_view vote_trial_script{vote_trial_text.data(), vote_trial_text.size()};

} // namespace redlock::net
