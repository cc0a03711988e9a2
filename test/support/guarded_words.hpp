// SPDX-License-Identifier: BSL-1.0
// The commands of guarded mode, translated to those of plain mode that they stand for.
#pragma once

#include "request_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::test
{

/// The beginning of a translated reply of a master that may not vote. No server sends it.
inline constexpr std::string_view no_vote = "-NOVOTE ";
/// The translated reply of a master that has denied a key, so that nothing has to be released there.
inline constexpr std::string_view denied_key = "$-1 denied\r\n";

/// A command of guarded mode in plain mode: an acquire is a SET, a question and an extension lose the keys of the group. A
/// grant is answered as there. A negative answer is an error that begins with `no_vote`.
struct plain_exchange
{
    std::string what;
    command words;
    std::string reply;
    std::optional<std::uint64_t> counter; // Of a grant.
};

/// Returns the translation of a command and its reply; empty for a command without one: those of plain mode, a raise, those
/// of quarantine and arming. `what` is that of `what_of`.
std::optional<plain_exchange>
in_plain_mode(const std::string& what, const command& words, const std::string& reply);

/// A raise, and its reply.
struct raise_words
{
    std::string key;
    std::string owner_id;
    std::string slot;
    std::uint64_t token;
};

/// Returns the words of a raise; empty for other commands.
std::optional<raise_words> read_raise(const std::string& what, const command& words);

/// Returns an acquire's answer in the place of the reply to its raise; empty if the raise was acknowledged.
std::optional<std::string> failed_raise(const std::string& reply);

} // namespace redlock::test
