// SPDX-License-Identifier: BSL-1.0
// The scripts of guarded mode. See docs/decisions/0022-scripts-of-the-guarded-mode.md.
#pragma once

#include "net/command.hpp"
#include "net/queue_scripts.hpp"
#include "net/script_text.hpp"

namespace redlock::net
{

// A master keeps two keys for the guarded mode, P being the prefix of its keys:
//
//   P:redlock-guard    the marker (core/marker.hpp)
//   P:redlock-fence    a hash: "0" to "1023" -> counter; "floor" -> the least value of all counters
//
// Numbers stay below 2^53, which a number of Lua can represent. A script that answers a negative number has changed
// nothing.

/// The largest counter.
inline constexpr std::int64_t max_counter = (std::int64_t{1} << 53) - 1;

/// The answers of a master that may not vote.
inline constexpr int guard_differs = -1;       ///< The marker isn't this one, or the counters are gone.
inline constexpr int incarnation_differs = -2; ///< The server was restarted or promoted, or it is a replica.
inline constexpr int clock_is_ahead = -3;      ///< Its clock shows a later time than it can.

/// Compares marker, incarnation and role. Reads the counter of a slot: nothing if the counters are gone or have another type. A
/// refusal of the command stays the error that it is.
inline constexpr char guard_common[] =
    R"lua(local function refusal(marker)
  if redis.pcall("get", KEYS[2]) ~= marker then return -1 end
  local info = redis.call("info", "replication")
  local is_same = string.find(info, "master_replid:" .. string.sub(marker, -40), 1, true)
  if not is_same or not string.find(info, "role:master", 1, true) then return -2 end
end
local function read_counter(slot)
  local read = redis.pcall("hmget", KEYS[3], slot, "floor")
  local is_wrong = read.err and string.find(read.err, "WRONGTYPE", 1, true)
  if read.err and not is_wrong then redis.call("hmget", KEYS[3], slot, "floor") end
  local floor = not read.err and tonumber(read[2])
  return floor and math.max(tonumber(read[1]) or 0, floor)
end
)lua";

/// Grants a key with the next number of its slot, as `next_counter` returns it: nothing if there is none. A hint is ignored if
/// it is both an hour ahead of the clock and 2^20 above the counter, so that a client with a wrong clock doesn't use the numbers
/// up. A failure after the counter was raised only wastes a number.
inline constexpr char grant_common[] =
    R"lua(local function next_counter(counter, hint, now)
  if hint > now + 3600000000 and hint > counter + 1048576 then hint = 0 end
  counter = math.max(counter + 1, hint)
  return counter < 9007199254740992 and counter or nil
end
local function grant(counter, slot, owner, ttl)
  redis.call("hset", KEYS[3], slot, counter)
  redis.call("set", KEYS[1], owner, "PX", ttl)
end
)lua";

/// Creates the key if the master may vote and nobody has it, and raises the counter of its slot before.
///
/// Keys: the resource, the marker, the counters. Arguments: the owner id, the ttl in milliseconds, the marker, the slot, the
/// hint, the latest time of its clock in microseconds.
///
/// Returns the counter if it granted, also to an owner id that has the key already; 0 if another has it; or one of the
/// negative answers above.
inline constexpr auto guarded_acquire_text = join(
    guard_common, grant_common,
    R"lua(local refused = refusal(ARGV[3])
if refused then return refused end
local holder = redis.pcall("get", KEYS[1])
if type(holder) == "table" and not string.find(holder.err, "WRONGTYPE", 1, true) then return holder end
if holder and holder ~= ARGV[1] then return 0 end
local time = redis.call("time")
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[6]) then return -3 end
local counter = read_counter(ARGV[4])
if not counter then return -1 end
if holder then return counter end
counter = next_counter(counter, tonumber(ARGV[5]), now)
if not counter then return -1 end
grant(counter, ARGV[4], ARGV[1], ARGV[2])
return counter)lua");
inline constexpr script guarded_acquire_script{
    {guarded_acquire_text.data(), guarded_acquire_text.size()}, "250057eb2b98f95b2925900ee25c2d701af712d9"};

/// Raises the counter of a slot to a token, if the master may vote and the key is ours. May run late, or twice.
///
/// Keys: as above. Arguments: the owner id, the marker, the slot, the token.
///
/// Returns 1 if the counter is the token, or above it; 0 if the key isn't ours; or a negative answer.
inline constexpr auto raise_text = join(
    guard_common,
    R"lua(local refused = refusal(ARGV[2])
if refused then return refused end
if redis.pcall("get", KEYS[1]) ~= ARGV[1] then return 0 end
local counter = read_counter(ARGV[3])
if not counter then return -1 end
local token = tonumber(ARGV[4])
if counter < token then redis.call("hset", KEYS[3], ARGV[3], token) end
return 1)lua");
inline constexpr script raise_script{
    {raise_text.data(), raise_text.size()}, "083070eedcb91741074038866de1655228d0d066"};

/// `ask_script` at a master that votes like this: compares marker, incarnation, role and clock before anything else, and raises
/// the counter before it sets the key.
///
/// Keys: the resource, the marker, the counters. Arguments: those of `ask_script`, the marker, the slot, the hint, the latest
/// time of its clock in microseconds.
///
/// Returns the number of clients that wait, and the counter, if granted. If refused, returns what `ask_script` returns. Or
/// returns one of the negative answers, and enters nobody.
inline constexpr auto guarded_ask_text = join(
    guard_common, grant_common,
    R"lua(local refused = refusal(ARGV[7])
if refused then return refused end
local holder = redis.pcall("get", KEYS[1])
if type(holder) == "table" and not string.find(holder.err, "WRONGTYPE", 1, true) then return holder end
local present = read_counter(ARGV[8])
if not present then return -1 end
)lua",
    queue_common,
    R"lua(if now > tonumber(ARGV[10]) then return -3 end
local following = next_counter(present, tonumber(ARGV[9]), now)
if not following then return -1 end
if holder == ARGV[2] then
  redis.call("pexpire", KEYS[1], ARGV[3])
  return {redis.call("zcard", order), present}
end
if not holder then rename(ARGV[1]) end
if not holder and serve(ARGV[1], "k", ARGV[6]) == ARGV[1] then
  grant(following, ARGV[8], ARGV[2], ARGV[3])
  drop(ARGV[1])
  local left = redis.call("zcard", order)
  if left == 0 then redis.call("del", alive) end
  return {left, following}
end
local rank = ARGV[5] == "0" and -1 or enter(ARGV[1], ARGV[4], ARGV[5])
return {rank, redis.call("pttl", KEYS[1]), redis.call("zcard", order)})lua");
inline constexpr script guarded_ask_script{
    {guarded_ask_text.data(), guarded_ask_text.size()}, "aed81290b834790374f2d9ac6adef44a81de5ba7"};

/// `extend_script` in the group of the lease: a key of an older group is no vote in this one. Neither the incarnation nor the
/// state of the marker matters, because the key is there.
///
/// Keys: the resource, the marker. Arguments: the owner id, the ttl in milliseconds, the beginning of the marker with the group.
///
/// Returns 1 if it was extended, 0 if the key isn't ours, or `guard_differs`.
inline constexpr script guarded_extend_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
local marker = redis.pcall("get", KEYS[2])
if type(marker) ~= "string" or string.sub(marker, 1, #ARGV[3]) ~= ARGV[3] then return -1 end
if redis.call("pttl", KEYS[1]) < tonumber(ARGV[2]) then redis.call("pexpire", KEYS[1], ARGV[2]) end
return 1)lua",
    "d04234ae62ed2ef2d2b3ed385f0d124366abd553"};

} // namespace redlock::net
