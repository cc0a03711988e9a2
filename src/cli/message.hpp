// SPDX-License-Identifier: BSL-1.0
// What the command says on stderr, without ever waiting for a reader.
#pragma once

#include <redlock/error.hpp>

#include <string>
#include <string_view>

namespace redlock::cli
{

/// Writes "redlock: " and the text as a line of its own.
///
/// It never blocks: a pipe that nobody reads, or a terminal whose output is held, must not keep the lease from being
/// extended, or the command from being stopped in time. What can't be written at once is dropped, and the next line
/// that can be written says so. One thread only.
void say(std::string_view text);

/// The name of a resource for a message: in quotes, escaped, and cut off if it is long.
std::string in_quotes(std::string_view resource);

/// What an error says has happened, without the advice that stands behind its colon: that is for programmers.
std::string what_happened(const error_code& error);

/// The same for `run` and `status`: where the library speaks of its options, this speaks of what they do.
std::string in_plain_words(const error_code& error);

/// Whether the operating system refused something that this process needs: descriptors, memory.
bool is_refused_by_system(const error_code& error) noexcept;

} // namespace redlock::cli
