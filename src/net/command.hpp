// SPDX-License-Identifier: BSL-1.0
// The commands of the three verbs, and how their replies become votes.
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

/// A Lua script, and the digest by which a server knows it.
struct script
{
    std::string_view text;
    std::string_view sha1;
};

/// Sets a new expiry if the key is ours, never an earlier one: an extension that comes late must not undo a
/// newer. A key that lost its expiry gets one again.
inline constexpr script extend_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call("pttl", KEYS[1]) < tonumber(ARGV[2]) then redis.call("pexpire", KEYS[1], ARGV[2]) end
return 1)lua",
    "0fb1b4f8c33500117953de4d978566ebb71567c7"};

/// Deletes the key if it is ours. With a second argument, for the leading master, it tells as well whether somebody stands in
/// line for it.
inline constexpr script release_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[1])
if not ARGV[2] then return 1 end
local left = redis.pcall("pttl", KEYS[1] .. ":redlock-line")
return type(left) == "number" and left > 0 and 3 or 1)lua",
    "ca1baee226d65423e373fb66b6da6d2579a7f6b3"};

/// Somebody who was refused, or knows that others were, asks the leading master whose turn it is. The key is set if nobody has
/// it, and either it is the asker's turn or nobody stands in line. Else the asker gets the place behind the last one: the
/// milliseconds until its turn. A place is as wide as a quarter of the time for which whoever has the key has been seen to
/// have it; the time in which nobody has it doesn't count.
///
/// The line is a key of its own, which lapses when the last one's turn is over. It holds by whom the key was held (a digest:
/// others may keep anything there), since when, the last one's turn, and who that is: whoever doesn't come back is missed
/// by nobody. A clock that was set makes it begin anew.
///
/// Arguments: the owner id, the ttl, 1 for somebody whose turn has come, for how long past it the last one is waited for, the
/// widest place. The times are in milliseconds.
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

/// As much of a foreign value as a `short_text` can show of it, and the byte that says that there is more.
inline constexpr std::size_t max_inspected_bytes = short_text::capacity + 1;

/// Returns the value of the key, cut off, and when it expires. A value of another type is an error in the value's place.
/// Always sent with EVAL: it is rare and needs no digest.
inline constexpr std::string_view inspect_script = R"lua(local value = redis.pcall("get", KEYS[1])
if type(value) == "string" then value = string.sub(value, 1, 96) end
return {value, redis.call("pttl", KEYS[1])})lua";
static_assert(max_inspected_bytes == 96, "the script has the number too");

/// How a script is named: by its digest, or in full where the server didn't know the digest.
enum class script_form : std::uint8_t
{
    digest, // EVALSHA.
    text    // EVAL.
};

void append_set(std::string& out, const claim& of, std::chrono::milliseconds ttl);
void append_extend(std::string& out, const claim& of, std::chrono::milliseconds ttl, script_form form);
void append_release(std::string& out, const claim& of, script_form form);
/// For the leading master: its answer tells of the line.
void append_release_at_leader(std::string& out, const claim& of);

/// What somebody in line asks for.
struct turn_request
{
    std::chrono::milliseconds ttl;
    bool in_line; // He has a place, and his turn has come.
    std::chrono::milliseconds waited_for;
    std::chrono::milliseconds widest_place;
};

void append_turn(std::string& out, const claim& of, const turn_request& asked, script_form form);

void append_inspect(std::string& out, std::string_view key);

/// What one master said, as a vote with its reason.
struct answer
{
    redlock::vote vote = redlock::vote::pending;
    error_code reason;
    std::string_view text; // What the server said, raw. Valid during the call that passes the answer.
    core::server_error error = core::server_error::none;  // What kind of error it is, if it is one.
    std::optional<std::chrono::milliseconds> time_left{}; // Until the key expires, or until one's turn.
    bool others_wait = false;                             // Somebody stands in line.
};

/// A vote without an answer, or with one that decides nothing.
inline answer no_answer(vote value, error_code reason, std::string_view text = {}) noexcept
{
    answer without;
    without.vote = value;
    without.reason = reason;
    without.text = text;
    return without;
}

/// Of a SET NX: OK is granted, nil is held.
answer read_set(const resp::reply& reply) noexcept;
/// Of an extension: 1 is granted, 0 is held ("not ours"), and so is a key of another type.
answer read_extend(const resp::reply& reply) noexcept;
/// Of a release: the same, and 2 more if others wait.
answer read_release(const resp::reply& reply) noexcept;
/// Of the turn in a line: 0 is granted, -1 is granted and others wait, a positive number is held, with the time until
/// the turn.
answer read_turn(const resp::reply& reply) noexcept;
/// What a master has under a key.
struct key_state
{
    error_code reason; // Why that isn't known.
    bool exists = false;
    std::string_view owner_id; // Its value, cut off. Empty for one of another type.
    std::string_view detail;   // What the server said of it. Both are valid as long as the reply.
    std::optional<std::chrono::milliseconds> expires_in{};
};

/// Of an inspection.
key_state read_inspect(const resp::reply& reply) noexcept;
/// Of TIME: what the server's clock shows, since 1970; empty for anything else.
std::optional<std::chrono::microseconds> read_time(const resp::reply& reply) noexcept;
/// By how much a clock is off, in words.
std::string clock_complaint(clock::duration off);
/// Of an error reply, as the reason of a vote.
error_code reason_of(core::server_error error) noexcept;
/// Whether a master that gives no vote for this reason will give none as long as nobody changes its settings or ours:
/// wrong password, no permission, a certificate that isn't trusted, not a master of its own.
bool is_for_good(error_code reason) noexcept;

} // namespace redlock::net
