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

/// Tries the commands of the scripts of a queue, and of the releases there, except SET, which every client needs. Some are called
/// only if others wait, so that one client would meet a refusal, and another one never.
///
/// Argument: the key of a queue that nobody needs. If somebody does, nothing changes: DEL is tried only if there is no such key.
/// Returns the name and the error of each command that failed, one after the other. Some fail for their arguments.
inline constexpr std::string_view queue_trial_script = R"lua(local key, failed = ARGV[1], {}
local commands = {
  {"exists", key}, {"get", key}, {"pttl", key}, {"pexpire", key, ""},
  {"zadd", key, "0", "", ""}, {"zrem", key, ""}, {"zrange", key, "0", "0"}, {"zrank", key, ""}, {"zscore", key, ""},
  {"zcard", key}, {"hset", key, "", "", ""}, {"hget", key, ""}, {"hmget", key, ""}, {"hdel", key, ""}, {"time"}}
if redis.pcall("get", key) == false then commands[#commands + 1] = {"del", key} end
for _, words in ipairs(commands) do
  local answer = redis.pcall(unpack(words))
  if type(answer) == "table" and answer.err then
    failed[#failed + 1] = string.upper(words[1])
    failed[#failed + 1] = answer.err
  end
end
return failed)lua";

/// Tries the commands with which a run of provisioning puts a master into quarantine and arms it, except those of the look. The
/// order is that of the scripts. One that leaves its group needs no counters: it may have no memory left, since a server whose
/// script has deleted a key permits it to write.
///
/// Keys: the record of the members, the marker, the counters, the groups that were replaced. Arguments: the number of the
/// database, whether the master leaves its group (0 or 1). Returns an empty text, or the first refusal with the name of the
/// command.
inline constexpr auto provision_trial_text = join(
    trial_common,
    R"lua(local refused
if ARGV[2] == "0" then
  refused = try(refused, "HMGET", KEYS[3], "floor")
  refused = try(refused, "HSET", KEYS[3], "floor", "0", "")
end
refused = try(refused, "SELECT", ARGV[1])
local absent = KEYS[4] .. "-trial"
if redis.pcall("get", absent) == false then refused = try(refused, "DEL", absent) end
refused = try(refused, "SET", KEYS[2], "", "NX", "XX")
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
