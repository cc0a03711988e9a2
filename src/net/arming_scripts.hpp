// SPDX-License-Identifier: BSL-1.0
// The scripts with which clients put a master into quarantine, and arm it. See
// docs/decisions/0022-scripts-of-the-guarded-mode.md.
#pragma once

#include "net/guard_scripts.hpp"

namespace redlock::net
{

// Keys of all of them: the record of the members, the marker, the counters.

/// The answer of `quarantine_script` if there may be markers in databases that it can't reach. It has changed nothing, or
/// has deleted markers of other databases.
inline constexpr int databases_unknown = -3;

/// The answer of `arm_script` if the master may evict keys, and with them its marker and counters.
inline constexpr int may_evict = -4;

/// Deletes the markers of the other databases than `own`. Returns false if a database can't be selected although it exists.
inline constexpr char clear_common[] =
    R"lua(local function clear_others()
  for database = 0, 16384 do
    if database ~= own then
      local selected = redis.pcall("select", database)
      if selected.err then return string.find(selected.err, "out of range", 1, true) end
      redis.call("del", KEYS[2])
    end
  end
end
)lua";

/// Begins a quarantine if the marker is the one that was seen, and writes the record: otherwise nothing would contradict an
/// operator who gives the name of the group with other servers. Deletes the markers of the other databases: SWAPDB could bring
/// one back. The last word of the new marker has to be the server's present replication id.
///
/// Arguments: the marker that was seen (empty for none), the new marker, the number of the database, the record.
///
/// Returns the marker that the master has now, the new one or that of another client; or a negative answer.
inline constexpr auto quarantine_text = join(
    R"lua(local info = redis.call("info", "replication")
local is_same = string.find(info, "master_replid:" .. string.sub(ARGV[2], -40), 1, true)
if not is_same or not string.find(info, "role:master", 1, true) then return -2 end
local present = redis.pcall("get", KEYS[2])
if (present or "") ~= ARGV[1] then return present or "" end
local own = tonumber(ARGV[3])
)lua",
    clear_common,
    R"lua(if not clear_others() then return -3 end
redis.call("select", own)
redis.call("set", KEYS[1], ARGV[4])
redis.call("set", KEYS[2], ARGV[2])
return ARGV[2])lua");
inline constexpr script quarantine_script{
    {quarantine_text.data(), quarantine_text.size()}, "16772d950729af0139bc9cc5b2b0b5edaccc10a2"};

/// Reads the largest counter of a master.
///
/// Arguments: the marker. Returns the largest counter, or a negative answer.
inline constexpr auto largest_counter_text = join(
    guard_common,
    R"lua(local refused = refusal(ARGV[1])
if refused then return refused end
local largest = read_counter("floor")
if not largest then return -1 end
for _, value in ipairs(redis.call("hvals", KEYS[3])) do
  largest = math.max(largest, tonumber(value) or 0)
end
return largest)lua");
inline constexpr script largest_counter_script{
    {largest_counter_text.data(), largest_counter_text.size()}, "d3d6c822d84441387ce8100eee79945de36a6b04"};

/// Ends a quarantine if the marker is the one that was waited for, unless the master may evict keys: its policy may have been
/// changed since a client has connected. Raises the floor before, unless no larger counter could follow.
///
/// Arguments: the marker, the same one armed, the least floor, the record. Returns the floor that it has now, or a negative
/// answer.
inline constexpr auto arm_text = join(
    guard_common,
    R"lua(local function raise_floor(least)
  local floor = math.max(read_counter("floor") or 0, tonumber(least))
  if floor >= 9007199254740992 then return end
  redis.call("hset", KEYS[3], "floor", floor)
  return floor
end
local refused = refusal(ARGV[1])
if refused then return refused end
local policy = string.match(redis.call("info", "memory"), "maxmemory_policy:([%w-]+)")
if policy and policy ~= "noeviction" then return -4 end
local floor = raise_floor(ARGV[3])
if not floor then return -1 end
redis.call("set", KEYS[1], ARGV[4])
redis.call("set", KEYS[2], ARGV[2])
return floor)lua");
inline constexpr script arm_script{
    {arm_text.data(), arm_text.size()}, "a8343d294e91dae62cefdfc09fa18feb11be4389"};

} // namespace redlock::net
