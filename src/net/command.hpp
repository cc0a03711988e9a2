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

/// Deletes the key if it is ours.
inline constexpr script release_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1]))lua",
    "eaed58c670563e4cca2a22fd7d18f942a278b74d"};

/// Tells whose the key is and when it expires. Always sent in full: it is rare, and is told apart from no other.
inline constexpr std::string_view inspect_script =
    R"lua(return {redis.call("get", KEYS[1]), redis.call("pttl", KEYS[1])})lua";

/// How a script is named: by its digest, or in full where the server didn't know the digest.
enum class script_form : std::uint8_t
{
    digest, // EVALSHA.
    text    // EVAL.
};

void append_set(std::string& out, const claim& of, std::chrono::milliseconds ttl);
void append_extend(std::string& out, const claim& of, std::chrono::milliseconds ttl, script_form form);
void append_release(std::string& out, const claim& of, script_form form);

void append_inspect(std::string& out, std::string_view key);

/// What one master said, as a vote with its reason.
struct answer
{
    redlock::vote vote = redlock::vote::pending;
    error_code reason;
    std::string_view text; // What the server said, raw. Valid during the call that passes the answer.
    core::release_after release = core::release_after::again; // Of an error.
    bool no_script = false;                                   // It doesn't know the script's digest.
    std::optional<std::chrono::milliseconds> expires_in{};    // Of an inspection.
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
/// Of a script: 1 is granted, 0 is held ("not ours").
answer read_script(const resp::reply& reply) noexcept;
/// Of an inspection: without a key it is granted; with one it is held, `text` is its value and `expires_in` the time
/// that is left, unless it never expires.
answer read_inspect(const resp::reply& reply) noexcept;
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
