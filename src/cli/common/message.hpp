// SPDX-License-Identifier: BSL-1.0
// Messages on stderr, which never block.
#pragma once

#include <redlock/error.hpp>

#include <string>
#include <string_view>

namespace redlock::cli
{

/// Writes a line of "redlock: " and the text.
///
/// It never blocks: a pipe without a reader, or a terminal whose output is paused, must not delay an extension of the
/// lease or the end of the command. A line that can't be written at once is dropped, and the next line that can be
/// written reports the number of dropped lines. Not thread-safe.
void say(std::string_view text);

/// Formats the name of a resource for a message: quoted, escaped and shortened.
std::string in_quotes(std::string_view resource);

/// Quotes a word of the command line for a message; "the value" if it may be a URL, which may contain a password.
std::string shown_word(std::string_view word);

/// Returns an error's message without the advice after its colon, which is for programmers.
std::string what_happened(const error_code& error);

/// Same, in terms of the command where the library's message names options of its API.
std::string in_plain_words(const error_code& error);

/// Returns true if the operating system refused descriptors or memory.
bool is_refused_by_system(const error_code& error) noexcept;

} // namespace redlock::cli
