// SPDX-License-Identifier: BSL-1.0
// The commands with which masters vote in guarded mode, the look at a master, and their replies.
#pragma once

#include "core/standing.hpp"
#include "net/command.hpp"
#include "net/guard_keys.hpp"
#include "net/queue_commands.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::net
{

/// What a master's vote depends on.
struct voting_terms
{
    std::string_view marker;          // The text with which the master was seen armed.
    std::uint64_t hint;               // Which the counter is raised to, if it is smaller.
    std::chrono::microseconds latest; // By the master's clock: from then on, it doesn't vote.
};

// Each of the following functions appends one serialised command to `out`. See guard_scripts.hpp.

void append_guarded_set(
    std::string& out, const claim& of, const guard_keys& keys, std::chrono::milliseconds ttl,
    const voting_terms& terms, script_form form);
void append_guarded_ask(
    std::string& out, const claim& of, const guard_keys& keys, const question& asked,
    const voting_terms& terms, script_form form);
/// `marker` as in `voting_terms`; `token` is 1 to 2^53 − 1.
void append_raise(
    std::string& out, const claim& of, const guard_keys& keys, std::string_view marker, std::uint64_t token,
    script_form form);
void append_guarded_extend(
    std::string& out, const claim& of, const guard_keys& keys, std::chrono::milliseconds ttl,
    std::string_view group, script_form form);

/// A trial of the commands that a master needs to vote and to be armed. Changes nothing.
void append_vote_trial(std::string& out, const guard_keys& keys, int database);

struct vote_trial
{
    refused_command of_vote;
    refused_command of_arming;
};

/// Translates the reply to `append_vote_trial`. Empty if it can't be one.
std::optional<vote_trial> read_vote_trial(const resp::reply& reply) noexcept;

/// Translates the reply to `append_guarded_set`: a counter is granted, 0 is denied. A negative answer is a vote `failed`, with
/// `set_nothing`.
answer read_guarded_set(const resp::reply& reply) noexcept;
/// Translates the reply to `append_guarded_ask`: two integers are granted, three are denied. A negative answer as above.
answer read_guarded_ask(const resp::reply& reply, core::queue_position& position) noexcept;
/// Translates the reply to `append_raise`: granted if the counter was raised, denied if the key isn't ours.
answer read_raise(const resp::reply& reply) noexcept;
/// Translates the reply to `append_guarded_extend`: as for an extension, and a vote `failed` if the group is another one.
answer read_guarded_extend(const resp::reply& reply) noexcept;

/// Returns whether a master has answered that it may not vote, so that its standing has changed.
bool is_guard_refusal(const answer& result) noexcept;

/// The replies to one look at a master, in the order of its commands.
class look
{
  public:
    static constexpr std::size_t commands = 4;

    /// Appends the `at`th command.
    static void append(std::string& out, const guard_keys& keys, std::size_t at);

    /// Takes the next reply. Returns false if it can't be one.
    bool take(const resp::reply& reply);
    /// The last command that can still be answered has no reply.
    void take_failure(const answer& none);

    bool is_complete() const noexcept { return replies_ + failures_ == commands; }
    /// Why the look failed; empty if it has shown something.
    error_code reason() const noexcept { return reason_; }
    const std::string& detail() const noexcept { return detail_; }
    const core::sight& seen() const noexcept { return seen_; }
    /// The text of the record of the members; empty if there is none.
    const std::string& members() const noexcept { return members_; }

  private:
    void fail(error_code why, std::string_view detail);
    bool take_text(const resp::reply& reply, std::optional<std::string>& value);
    bool take_replication(const resp::reply& reply);

    std::size_t replies_ = 0;
    std::size_t failures_ = 0;
    error_code reason_;
    std::string detail_;
    core::sight seen_;
    std::string members_;
};

} // namespace redlock::net
