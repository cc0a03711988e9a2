// SPDX-License-Identifier: BSL-1.0
// Parses commands from a stream of bytes, as clients send them.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// A command from a client: its name and its arguments.
using command = std::vector<std::string>;

/// Returns the command's name in capitals; empty for an empty command.
std::string name_of(const command& words);

/// Thrown for input that is not a command.
class malformed_request : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/// Accepts only arrays of bulk strings, the one form that a client library may send.
class request_reader
{
  public:
    static constexpr std::size_t max_words = 1024;
    static constexpr std::size_t max_word_size = 1024 * 1024;

    /// Appends received bytes.
    void feed(std::string_view bytes) { buffer_ += bytes; }
    /// Returns the next command, empty if it is incomplete. Throws `malformed_request`.
    std::optional<command> next();
    /// Returns whether the bytes ended with a command, so that none is incomplete.
    bool at_end() const noexcept { return buffer_.empty(); }
    /// Returns the number of bytes that no command has taken yet.
    std::size_t left() const noexcept { return buffer_.size(); }

  private:
    std::optional<std::size_t> length_at(std::size_t& position, char mark, std::size_t most) const;

    std::string buffer_;
};

} // namespace redlock::test
