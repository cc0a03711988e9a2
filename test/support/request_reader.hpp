// SPDX-License-Identifier: BSL-1.0
// Takes commands, as clients send them, out of a stream of bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// One command as it came from a client: its name and its arguments.
using command = std::vector<std::string>;

/// The command's name in capitals; empty for an empty command.
std::string name_of(const command& words);

/// What came is no command.
class malformed_request : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/// Reads arrays of bulk strings, and nothing else: that is all a client library may send.
class request_reader
{
  public:
    static constexpr std::size_t most_words = 1024;
    static constexpr std::size_t longest_word = 1024 * 1024;

    /// Takes over bytes as they came.
    void feed(std::string_view bytes) { buffer_ += bytes; }
    /// The next command, nothing when it isn't complete. Throws `malformed_request`.
    std::optional<command> next();

  private:
    std::optional<std::size_t> length_at(std::size_t& position, char mark, std::size_t most) const;

    std::string buffer_;
};

} // namespace redlock::test
