// SPDX-License-Identifier: BSL-1.0
// The commands that are sent to masters, and the translation of their replies into votes.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>
#include <redlock/vote.hpp>

#include "core/server_error.hpp"
#include "net/claim.hpp"
#include "resp/value.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::net
{

/// A Lua script, and the SHA-1 digest that identifies it on a server.
struct script
{
    std::string_view text;
    std::string_view sha1;
};

/// Extends the expiry of the key if its value is our owner id. The expiry is never shortened, so that a late extension
/// can't undo a newer one. A key without an expiry is given one.
inline constexpr script extend_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call("pttl", KEYS[1]) < tonumber(ARGV[2]) then redis.call("pexpire", KEYS[1], ARGV[2]) end
return 1)lua",
    "0fb1b4f8c33500117953de4d978566ebb71567c7"};

/// Deletes the key if its value is our owner id: returns 1, or 0 if the value is another one. With a second argument,
/// at the queue master, returns 3 instead of 1 if clients are queued for the resource.
inline constexpr script release_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[1])
if not ARGV[2] then return 1 end
local left = redis.pcall("pttl", KEYS[1] .. ":redlock-line")
return type(left) == "number" and left > 0 and 3 or 1)lua",
    "ca1baee226d65423e373fb66b6da6d2579a7f6b3"};

/// Asks for the resource at the queue master, through the time-slot queue. Sets the key if it doesn't exist and either
/// the slot of this client has come or no client is queued: returns 0, or -1 if other clients are queued. Otherwise
/// appends a slot for this client, and returns the milliseconds until it begins. A slot is a quarter as wide as the
/// time for which the current value of the key has been observed.
///
/// The queue is a separate key, which expires after the last slot. It contains a digest of the key's value (foreign
/// values may be anything), the time since which this value has been observed, the start of the last slot, and the
/// owner id of the client that has it. A client that doesn't return needs no clean-up. The queue restarts if the
/// server's clock was set.
///
/// Arguments: the owner id, the ttl, 1 if the slot of this client has come or else 0, how long the queue outlives the
/// start of the last slot, the maximum width of a slot. All times are in milliseconds.
inline constexpr script turn_script{
    R"lua(local line = KEYS[1] .. ":redlock-line"
local holder = redis.call("get", KEYS[1])
local seen = redis.call("get", line)
local known, since, before, last
if seen then
  known, since, before, last = string.match(seen, "^line (%x+) (%d+) (%d+) (%S+)$")
  if not known then return redis.error_reply("ERR the key of the line is no line") end
end
if not holder and (ARGV[3] == "1" or not seen) then
  redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
  if seen and last ~= ARGV[1] then return -1 end
  redis.call("del", line)
  return 0
end
local time = redis.call("time")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local whose = redis.sha1hex(holder or "")
since, before = tonumber(since) or now, tonumber(before) or now
if not holder or known ~= whose or since > now then since = now end
if before < now or before > now + 3600000 then before = now end
local place = math.min(math.max(math.floor((now - since) / 4), 1), tonumber(ARGV[5]))
local turn = math.min(before + place + 1 - ARGV[3], now + 3600000)
redis.call("set", line, "line " .. whose .. " " .. since .. " " .. turn .. " " .. ARGV[1], "PX", turn - now + ARGV[4])
return turn - now)lua",
    "f74a54abf2623c62e009162145bc8472d000b3c4"};

/// The part of a foreign value that is read: as much as a `short_text` can show, and one more byte if it is longer.
inline constexpr std::size_t max_inspected_bytes = short_text::capacity + 1;

/// Returns the value of the key, truncated, and its time to live. A value of another type is replaced with an error.
/// Always sent with EVAL: it is rare and needs no digest.
inline constexpr std::string_view inspect_script = R"lua(local value = redis.pcall("get", KEYS[1])
if type(value) == "string" then value = string.sub(value, 1, 96) end
return {value, redis.call("pttl", KEYS[1])})lua";
static_assert(max_inspected_bytes == 96, "the script has the number too");

/// The way in which a script is sent: by its digest, or in full to a server that doesn't know the digest.
enum class script_form : std::uint8_t
{
    digest, // EVALSHA.
    text    // EVAL.
};

// Each of the following functions appends one serialised command to `out`.

void append_set(std::string& out, const claim& of, std::chrono::milliseconds ttl);
void append_extend(std::string& out, const claim& of, std::chrono::milliseconds ttl, script_form form);
void append_release(std::string& out, const claim& of, script_form form);
/// For the queue master: the reply reports whether clients are queued.
void append_release_at_leader(std::string& out, const claim& of);

/// The arguments of `turn_script`, apart from the owner id.
struct turn_request
{
    std::chrono::milliseconds ttl;
    bool in_line; // The client has a slot, which has come.
    std::chrono::milliseconds waited_for;
    std::chrono::milliseconds widest_place;
};

void append_turn(std::string& out, const claim& of, const turn_request& asked, script_form form);

void append_inspect(std::string& out, std::string_view key);

/// The reply of one master, as a vote with its reason.
struct answer
{
    redlock::vote vote = redlock::vote::pending;
    error_code reason;
    std::string_view text; // The server's text, unmodified. Valid during the call that passes the answer.
    core::server_error error = core::server_error::none;  // The kind of an error reply.
    std::optional<std::chrono::milliseconds> time_left{}; // Until the slot in the queue begins.
    bool others_wait = false;                             // Other clients are queued.
};

/// Returns a vote for a missing or unusable reply.
inline answer make_failed_vote(vote value, error_code reason, std::string_view text = {}) noexcept
{
    answer without;
    without.vote = value;
    without.reason = reason;
    without.text = text;
    return without;
}

/// Translates the reply to a SET NX: OK is granted, nil is denied.
answer read_set(const resp::reply& reply) noexcept;
/// Translates the reply to an extension: 1 is granted; 0 and a key of another type are denied ("not ours").
answer read_extend(const resp::reply& reply) noexcept;
/// Translates the reply to a release: as for an extension, with 2 added if clients are queued.
answer read_release(const resp::reply& reply) noexcept;
/// Translates the reply of `turn_script`: 0 is granted, -1 is granted while other clients are queued, a positive number
/// is denied, with the time until the slot begins.
answer read_turn(const resp::reply& reply) noexcept;
/// The state of a key at one master.
struct key_state
{
    error_code reason; // Why the state is unknown.
    bool exists = false;
    std::string_view owner_id; // The value, truncated. Empty for a value of another type.
    std::string_view detail;   // The server's error text. Both views are valid as long as the reply.
    std::optional<std::chrono::milliseconds> expires_in{};
};

/// Translates the reply to an inspection.
key_state read_inspect(const resp::reply& reply) noexcept;
/// Returns the server's time since the Unix epoch from a reply to TIME, or nothing for any other reply.
std::optional<std::chrono::microseconds> read_time(const resp::reply& reply) noexcept;
/// Describes the deviation of a server's clock.
std::string clock_complaint(clock::duration off);
/// Returns the reason of a vote for an error reply.
error_code reason_of(core::server_error error) noexcept;
/// Returns whether a master won't vote until the configuration of the server or of this client is changed: wrong
/// password, no permission, rejected certificate, node of a cluster, a server that is configured twice.
bool is_permanent(error_code reason) noexcept;

} // namespace redlock::net
