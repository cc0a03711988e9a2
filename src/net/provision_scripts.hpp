// SPDX-License-Identifier: BSL-1.0
// The scripts of provisioning, in addition to those of arming. They run rarely, and are always sent in full. See
// docs/decisions/0023-provisioning.md.
#pragma once

#include "net/arming_scripts.hpp"
#include "net/script_text.hpp"

#include <string>
#include <string_view>

namespace redlock::net
{

// Keys of all: the record of the members, the marker, the counters, the groups that were replaced.

/// Looks at a master, without a change. Values of strangers may have any size, so they are truncated: a marker is
/// shorter, a record has at most 31 names, and no run writes more of the replaced groups.
///
/// Arguments: the number of the database.
///
/// Returns the marker, the record, the replaced groups (each null for none), the largest counter (-1 for none), whether there is
/// a floor, whether one of the keys has another type, the replication id, the role, the maxmemory-policy, whether there are
/// other keys in any database, another database that has a marker (-1 for none), its marker, and the time in microseconds.
inline constexpr std::string_view provision_look_script =
    R"lua(local is_foreign, own_keys = 0, 0
local function read(command, key)
  local value = redis.pcall(command, key)
  if type(value) == "table" and value.err then
    if not string.find(value.err, "WRONGTYPE", 1, true) then return redis.call(command, key) end
    is_foreign = 1
    own_keys = own_keys + 1
    return false
  end
  if type(value) == "string" or value and #value > 0 then own_keys = own_keys + 1 end
  return value
end
local record = read("get", KEYS[1])
local marker = read("get", KEYS[2])
local replaced = read("get", KEYS[4])
local largest = -1
for _, value in ipairs(read("hvals", KEYS[3]) or {}) do
  local number = tonumber(value) or 0
  if number > largest then largest = math.min(number, 9007199254740992) end
end
local has_floor = 0
if largest >= 0 and redis.call("hget", KEYS[3], "floor") then has_floor = 1 end
local other_keys, other_database, other_marker = 0, -1, ""
for name, keys in string.gmatch(redis.call("info", "keyspace"), "db(%d+):keys=(%d+)") do
  local database = tonumber(name)
  if database == tonumber(ARGV[1]) then
    if tonumber(keys) > own_keys then other_keys = 1 end
  else
    other_keys = 1
    redis.call("select", database)
    local found = read("get", KEYS[2])
    if found and other_database < 0 then
      other_database = database
      other_marker = string.sub(found, 1, 1024)
    end
  end
end
local replication = redis.call("info", "replication")
local time = redis.call("time")
return {
  marker and string.sub(marker, 1, 1024), record and string.sub(record, 1, 33000),
  replaced and string.sub(replaced, 1, 28000), largest, has_floor, is_foreign,
  string.match(replication, "master_replid:(%x+)") or "", string.match(replication, "role:(%a+)") or "",
  string.match(redis.call("info", "memory"), "maxmemory_policy:([%w-]+)") or "",
  other_keys, other_database, other_marker, math.min(time[1] * 1000000 + time[2], 9007199254740992)})lua";

/// Returns the script that begins a quarantine as `quarantine_script` does, or moves a master to another group. If it did,
/// it writes the groups that are replaced, and deletes counters that don't count.
///
/// Arguments: those of `quarantine_script`, the replaced groups (empty for none), whether the counters count (0 or 1).
inline std::string provision_quarantine_script()
{
    return std::string{"local function begin()\n"}.append(quarantine_script.text).append(R"lua(
end
local marker = begin()
if marker == ARGV[2] then
  if ARGV[6] == "0" then redis.call("del", KEYS[3]) end
  if ARGV[5] == "" then redis.call("del", KEYS[4]) else redis.call("set", KEYS[4], ARGV[5]) end
end
return marker)lua");
}

/// Deletes the markers of all databases, if the one of this database is the one that was seen.
///
/// Arguments: the marker that was seen, the number of the database.
///
/// Returns the marker that the master has now, empty for none; or `databases_unknown`.
inline constexpr auto retire_text = join(
    R"lua(local present = redis.pcall("get", KEYS[2])
if present ~= ARGV[1] then return present or "" end
local own = tonumber(ARGV[2])
)lua",
    clear_common,
    R"lua(if not clear_others() then return -3 end
redis.call("select", own)
redis.call("del", KEYS[2], KEYS[4])
return "")lua");
inline constexpr std::string_view retire_script{retire_text.data(), retire_text.size()};

} // namespace redlock::net
