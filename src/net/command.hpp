// SPDX-License-Identifier: BSL-1.0
// The commands that are sent to masters, and the translation of their replies into votes.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>
#include <redlock/vote.hpp>

#include "core/queue_timing.hpp"
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

/// Deletes the key if its value is our owner id: returns 1, or 0 if the value is another one.
inline constexpr script release_script{
    R"lua(if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1]))lua",
    "eaed58c670563e4cca2a22fd7d18f942a278b74d"};

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

constexpr std::string_view verb_of(script_form form) noexcept
{
    return form == script_form::digest ? "EVALSHA" : "EVAL";
}
constexpr std::string_view body_of(const script& which, script_form form) noexcept
{
    return form == script_form::digest ? which.sha1 : which.text;
}

// Each of the following functions appends one serialised command to `out`.

void append_set(std::string& out, const claim& of, std::chrono::milliseconds ttl);
void append_extend(std::string& out, const claim& of, std::chrono::milliseconds ttl, script_form form);
void append_release(std::string& out, const claim& of, script_form form);
/// A serialised release by digest.
struct release_command
{
    std::string_view text;
    bool for_queue; // It calls `release_to_queue_script`, not `release_script`.
};

void append_inspect(std::string& out, std::string_view key);

/// The reply of one master, as a vote with its reason.
struct answer
{
    redlock::vote vote = redlock::vote::pending;
    error_code reason;
    std::string_view text; // The server's text, unmodified. Valid during the call that passes the answer.
    core::server_error error = core::server_error::none; // The kind of an error reply.
    bool others_wait = false;                            // Other clients wait in the queue of the resource.
    bool set_nothing = false;  // In guarded mode: the script says that it has set no key.
    std::uint64_t counter = 0; // In guarded mode, of a grant.
    const core::queue_position* position =
        nullptr; // Ours in that queue, if we were entered. As long as `text`.
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

/// Translates a reply other than the expected ones: an error, or one that can't be to the command.
answer read_unexpected(const resp::reply& reply) noexcept;
/// Translates the reply to a SET NX: OK is granted, nil is denied.
answer read_set(const resp::reply& reply) noexcept;
/// Translates the reply to an extension: 1 is granted; 0 and a key of another type are denied ("not ours").
answer read_extend(const resp::reply& reply) noexcept;
/// Translates the reply to a release: as for an extension, with 2 added if other clients wait.
answer read_release(const resp::reply& reply) noexcept;
/// Translates the reply to a question (`ask_script`): an integer is granted, an array is denied. The answer refers to
/// `position`.
answer read_ask(const resp::reply& reply, core::queue_position& position) noexcept;
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
