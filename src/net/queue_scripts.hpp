// SPDX-License-Identifier: BSL-1.0
// The scripts of the wait queue, which run at the queue master of a resource. See docs/decisions/0016-the-wait-queue.md.
#pragma once

#include "net/command.hpp"
#include "net/script_text.hpp"

namespace redlock::net
{

// Two keys contain the queue of the resource at KEYS[1]. Their names are built inside the scripts.
//
//   redlock-queue:order:<key>  a sorted set: member -> arrival
//   redlock-queue:alive:<key>  a hash: member -> deadline; "" -> the member woken last, and when;
//                              "@" -> the last reading of the server's clock, and its skew
//
// All times in them are microseconds of the queue's clock: the server's TIME plus a skew, which grows by as much as TIME
// is set back. A member is <manager id>:<number>, with a leading "-" if the manager isn't subscribed to its channel
// redlock:<manager id> at this master. A message consists of a letter and the number: "r" after a release, "k" (kick) if
// another waiter found the resource free.
//
// The part that both scripts share. `rename` gives the entry of a client its present name if its mark has changed. `enter`
// returns the position, without up to 1000 lost members at the head of the queue: the first client has to ask all masters now
// and then, which one that has died doesn't. It writes no key until it has read all that it needs, so that a user who may not
// read it leaves none without an expiry. `serve` returns the waiter that may take the free resource, and wakes it unless it
// is the one that asks; it gives up after 1000 steps, or once it has dropped 5000 members. A member is lost if its deadline has
// passed, or if nobody receives the messages of its manager; it is dropped as well if it was woken longer than the grace ago and
// has not asked since. A member that was woken within the grace, and has not asked since, stays the one that is served, even if
// an older one has returned. It is sent a message again, which shows whether its client is still connected.
inline constexpr char queue_common[] =
    R"lua(local order, alive = "redlock-queue:order:" .. KEYS[1], "redlock-queue:alive:" .. KEYS[1]
local function number(value) return string.format("%.0f", value) end
local time = redis.call("time")
local now = time[1] * 1000000 + time[2]
local state = redis.call("hmget", alive, "@", "")
local read, skew = string.match(state[1] or "", "^(%d+) (%d+)$")
skew = (tonumber(skew) or 0) + math.max((tonumber(read) or 0) - now, 0)
local clock = now + skew
local woken, at = string.match(state[2] or "", "^(%S+) (%d+)$")
at = tonumber(at)
local function note(member, when)
  woken, at = member, when
  redis.call("hset", alive, "", member .. " " .. number(when))
end
local function drop(...)
  redis.call("zrem", order, ...)
  redis.call("hdel", alive, ...)
end
local function other_name(member) return string.sub(member, 1, 1) == "-" and string.sub(member, 2) or "-" .. member end
local function rename(member)
  local former = other_name(member)
  local arrival = redis.call("zscore", order, former)
  if not arrival then return end
  redis.call("zadd", order, arrival, member)
  if woken == former then note(member, at) end
  drop(former)
end
local gone = {}
local function is_lost(member, deadline)
  return (tonumber(deadline) or 0) < clock or gone[string.match(member, "^(%x+):")]
end
local function lost_heads(most, asker)
  local lost = {}
  while #lost < most do
    local heads = redis.call("zrange", order, #lost, math.min(2 * #lost, most - 1))
    if #heads == 0 then break end
    local deadlines = redis.call("hmget", alive, unpack(heads))
    for index, head in ipairs(heads) do
      if head == asker or not is_lost(head, deadlines[index]) then return lost end
      lost[#lost + 1] = head
    end
  end
  return lost
end
local function enter(member, waited, liveness)
  rename(member)
  if member == woken then
    redis.call("hdel", alive, "")
    woken = nil
  end
  local expiry = number(math.max(10000, 2 * liveness * (1 + redis.call("zcard", order) / 64)))
  local rank = redis.call("zrank", order, member)
  if not rank then
    redis.call("zadd", order, number(clock - waited * 1000), member)
    rank = redis.call("zrank", order, member)
  end
  redis.call("pexpire", order, expiry)
  redis.call("hset", alive, member, number(clock + liveness * 1000 * (1 + rank / 64)), "@", number(now) .. " " .. number(skew))
  redis.call("pexpire", alive, expiry)
  return rank - #lost_heads(math.min(rank, 1000))
end
local function send(member, letter)
  local id, waiter = string.match(member, "^(%x+):(%d+)$")
  if not id then return string.sub(member, 1, 1) == "-" end
  gone[id] = redis.pcall("publish", "redlock:" .. id, letter .. waiter) == 0
  return not gone[id]
end
local function serve(asker, letter, grace)
  local dropped = 0
  for _ = 1, 1000 do
    local recent = woken and clock <= at + grace * 1000 and redis.call("zscore", order, woken)
    local first = recent and woken or redis.call("zrange", order, 0, 0)[1]
    if not first then
      redis.call("del", alive)
      return asker
    end
    if first == asker then return first end
    local absent = first == woken and not recent
    if not is_lost(first, redis.call("hget", alive, first)) and not absent and send(first, letter) then
      if not recent or letter == "r" then note(first, clock) end
      return first
    end
    drop(first)
    local lost = lost_heads(100, asker)
    if #lost > 0 then drop(unpack(lost)) end
    dropped = dropped + 1 + #lost
    if dropped > 5000 then return end
  end
end
)lua";

/// Asks for the resource. Grants it if the key doesn't exist and it is this client's turn; otherwise enters the client
/// in the queue, or renews its entry.
///
/// Arguments: the member, the owner id, the ttl, for how long the client has waited, the liveness (0: don't enter), the
/// grace. All times are in milliseconds.
///
/// Returns the number of clients that wait, if granted. If refused, returns an array: the position in the queue from 0
/// (-1 if not entered), the time to live of the key as PTTL returns it, and the number of clients that wait.
inline constexpr auto ask_text = join(
    R"lua(local holder = redis.pcall("get", KEYS[1])
if type(holder) == "table" and not string.find(holder.err, "WRONGTYPE", 1, true) then return holder end
if not holder and redis.call("exists", "redlock-queue:order:" .. KEYS[1]) == 0 then
  redis.call("set", KEYS[1], ARGV[2], "PX", ARGV[3])
  return 0
end
)lua",
    queue_common,
    R"lua(if holder == ARGV[2] then
  redis.call("pexpire", KEYS[1], ARGV[3])
  return redis.call("zcard", order)
end
if not holder then rename(ARGV[1]) end
if not holder and serve(ARGV[1], "k", ARGV[6]) == ARGV[1] then
  redis.call("set", KEYS[1], ARGV[2], "PX", ARGV[3])
  drop(ARGV[1])
  local left = redis.call("zcard", order)
  if left == 0 then redis.call("del", alive) end
  return left
end
local rank = ARGV[5] == "0" and -1 or enter(ARGV[1], ARGV[4], ARGV[5])
return {rank, redis.call("pttl", KEYS[1]), redis.call("zcard", order)})lua");
inline constexpr script ask_script{
    {ask_text.data(), ask_text.size()}, "018edb097ce2b4a668545911b68de674bbe3662e"};

/// Deletes the key if its value is our owner id, and wakes the client whose turn it is. Works as a release without a
/// queue if the ACL forbids the queue's keys.
///
/// Arguments: the owner id, the grace, the mode ("released" if it is missing), the member (empty or missing for none);
/// for "lost" also for how long the client has waited, the liveness, and its pause. The modes:
///
///   released  a lease ends: wakes a client in any case, also if the key isn't ours
///   left      the client doesn't wait any more: wakes another one only if the key was deleted, or if the client was the
///             first in the queue, or woken, and the key doesn't exist
///   lost      the client's round was lost: it keeps its position. If this master had granted it, it counts as woken until
///             the end of its pause. Otherwise another client may have been woken meanwhile, and is served first
///
/// Returns 1 if the key was deleted, or 0, and 2 more if other clients wait.
inline constexpr auto release_to_queue_text = join(
    R"lua(local deleted = 0
local holder = redis.pcall("get", KEYS[1])
local failed = type(holder) == "table" and holder
if holder == ARGV[1] then deleted = redis.call("del", KEYS[1]) end
local mode, member = ARGV[3] or "released", ARGV[4] or ""
local waiting = redis.pcall("zcard", "redlock-queue:order:" .. KEYS[1])
if type(waiting) == "table" or (waiting == 0 and mode ~= "lost") then return failed or deleted end
)lua",
    queue_common,
    R"lua(if mode == "lost" then
  enter(member, ARGV[5], ARGV[6])
  if deleted == 1 then note(member, clock + ARGV[7] * 1000) end
  return failed or (redis.call("zcard", order) > 1 and deleted + 2) or deleted
end
local first, was_next = redis.call("zrange", order, 0, 0)[1], false
if member ~= "" then
  for _, name in ipairs({member, other_name(member)}) do
    was_next = was_next or first == name or woken == name
    drop(name)
  end
end
if mode == "released" or deleted == 1 or (was_next and redis.call("exists", KEYS[1]) == 0) then
  serve("", "r", ARGV[2])
end
if redis.call("zcard", order) > 0 then return failed or deleted + 2 end
redis.call("del", alive)
return failed or deleted)lua");
inline constexpr script release_to_queue_script{
    {release_to_queue_text.data(), release_to_queue_text.size()}, "a1149057690fb55cb28204d3f7e00dd7702e0dcf"};

} // namespace redlock::net
