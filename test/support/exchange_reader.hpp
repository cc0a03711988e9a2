// SPDX-License-Identifier: BSL-1.0
// Pairs the commands on a connection with their replies.
#pragma once

#include "request_reader.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace redlock::test
{

/// A command and the bytes of its reply.
struct exchange
{
    command words;
    std::string reply;
};

/// Thrown for bytes of a server that are neither RESP2 nor RESP3.
class malformed_reply : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

/// Reads both directions of one connection. Attributes and pushes are no replies, and are skipped. Streamed RESP3 values
/// aren't supported, because no server sends them.
class exchange_reader
{
  public:
    /// Appends bytes of the client. Throws `malformed_request`.
    void feed_commands(std::string_view bytes);
    /// Appends bytes of the server.
    void feed_replies(std::string_view bytes) { replies_ += bytes; }
    /// Returns the next command that was answered, empty if there is none. Throws `malformed_reply`.
    std::optional<exchange> next();

  private:
    request_reader reader_;
    std::deque<command> unanswered_;
    std::string replies_;
};

} // namespace redlock::test
