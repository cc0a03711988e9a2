// SPDX-License-Identifier: BSL-1.0
// A blocking RESP2 client for the tests, independent of the library under test.
#pragma once

#include "loopback.hpp"

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// One reply of a server.
struct reply
{
    /// The types of a reply.
    enum class kind
    {
        null,    ///< null
        string,  ///< a simple or a bulk string, in `text`
        integer, ///< a number, in `integer`
        error,   ///< a refusal, in `text`, with its code and without the minus sign
        array,   ///< replies, in `elements`
    };

    kind type = kind::null;
    std::string text = {};
    std::int64_t integer = 0;
    std::vector<reply> elements = {};

    /// True for the null reply.
    bool is_null() const { return type == kind::null; }
    /// True for an error.
    bool is_error() const { return type == kind::error; }
    /// Compares equal to a string reply with this text.
    friend bool operator==(const reply& left, std::string_view expected)
    {
        return left.type == kind::string && left.text == expected;
    }
    /// Compares equal to an integer reply with this number.
    friend bool operator==(const reply& left, std::int64_t expected)
    {
        return left.type == kind::integer && left.integer == expected;
    }
};

/// Formats a reply for the messages of failed tests.
std::string describe(const reply& answer);
/// Writes `describe(answer)`.
std::ostream& operator<<(std::ostream& out, const reply& answer);

/// Thrown if the connection ended, was reset or couldn't be made, or if no answer came in time.
class connection_lost : public std::runtime_error
{
  public:
    /// `error` is the errno, 0 for an orderly end by the other side.
    connection_lost(int error, const std::string& what);
    /// The errno: ECONNREFUSED, ECONNRESET, ETIMEDOUT, ..., or 0 for an orderly end by the other side.
    int error() const { return error_; }

  private:
    int error_;
};

/// Returns the bytes that a client sends for a command.
std::string on_the_wire(const std::vector<std::string_view>& words);

/// A blocking connection. Not thread-safe.
class control_client
{
  public:
    /// The timeout of one answer.
    static constexpr std::chrono::milliseconds default_limit{10'000};

    /// Connects to a port of 127.0.0.1. Throws `connection_lost`.
    static control_client to_port(int port, std::chrono::milliseconds limit = default_limit);
    /// Connects to a unix socket. Throws `connection_lost`.
    static control_client to_path(const std::string& path, std::chrono::milliseconds limit = default_limit);

    /// Sends a command and reads its answer. Throws `connection_lost`.
    reply command(const std::vector<std::string_view>& words);
    /// Sends a command without waiting for the answer. Throws `connection_lost`.
    void send(const std::vector<std::string_view>& words);
    /// Sends these bytes unchanged. Throws `connection_lost`.
    void send_bytes(std::string_view bytes);
    /// Reads the next answer. Throws `connection_lost`, with ETIMEDOUT if none comes in time.
    reply receive();
    /// Waits for something to read: bytes, or the end of the connection. False if there is nothing after `at_most`.
    bool wait_readable(std::chrono::milliseconds at_most);
    /// Returns the bytes up to the end of the connection, at most `limit`. Throws like `receive`, but not at an orderly
    /// end.
    std::string receive_until_end(std::size_t limit);

  private:
    control_client(unique_fd socket, std::chrono::milliseconds limit);

    bool fill(std::chrono::steady_clock::time_point deadline);
    std::string line(std::chrono::steady_clock::time_point deadline);
    std::string bytes(std::size_t count, std::chrono::steady_clock::time_point deadline);
    reply receive(std::chrono::steady_clock::time_point deadline, int depth);

    unique_fd socket_;
    std::chrono::milliseconds limit_;
    std::string buffer_;
};

} // namespace redlock::test
