// SPDX-License-Identifier: BSL-1.0
// A blocking RESP2 client of the tests' own, so that what a test looks up never passes through the library.
#pragma once

#include "loopback.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// One reply of a server.
struct reply
{
    /// What a server can answer.
    enum class kind
    {
        null,    ///< nothing there
        string,  ///< a simple or a bulk string, in `text`
        integer, ///< a number, in `integer`
        error,   ///< a refusal, in `text`, with its code and without the minus sign
        array,   ///< replies, in `elements`
    };

    kind type = kind::null;
    std::string text = {};
    std::int64_t integer = 0;
    std::vector<reply> elements = {};

    /// Whether it is the null reply.
    bool is_null() const { return type == kind::null; }
    /// Whether it is an error.
    bool is_error() const { return type == kind::error; }
    /// Equal to a string reply with this text.
    friend bool operator==(const reply& left, std::string_view expected)
    {
        return left.type == kind::string && left.text == expected;
    }
    /// Equal to an integer reply with this number.
    friend bool operator==(const reply& left, std::int64_t expected)
    {
        return left.type == kind::integer && left.integer == expected;
    }
};

/// The reply as a person would write it, for messages of failed tests.
std::string describe(const reply& answer);
/// Writes `describe(answer)`.
std::ostream& operator<<(std::ostream& out, const reply& answer);

/// The connection ended, was reset, could not be made, or no answer came in time.
class connection_lost : public std::runtime_error
{
  public:
    /// With the errno of what happened, 0 for an orderly end by the other side.
    connection_lost(int error, const std::string& what);
    /// The errno: ECONNREFUSED, ECONNRESET, ETIMEDOUT, ..., or 0 for an orderly end by the other side.
    int error() const { return error_; }

  private:
    int error_;
};

/// One blocking connection. Not for several threads at once.
class control_client
{
  public:
    /// How long one answer may take.
    static constexpr std::chrono::milliseconds default_limit{10'000};

    /// Connects to a port of 127.0.0.1. Throws `connection_lost`.
    static control_client to_port(int port, std::chrono::milliseconds limit = default_limit);
    /// Connects to a unix socket. Throws `connection_lost`.
    static control_client to_path(const std::string& path, std::chrono::milliseconds limit = default_limit);

    /// Sends one command and reads its answer. Throws `connection_lost`.
    reply command(std::span<const std::string_view> arguments);
    /// Sends one command and reads its answer. Throws `connection_lost`.
    reply command(std::initializer_list<std::string_view> arguments);
    /// Sends one command and doesn't wait for the answer. Throws `connection_lost`.
    void send(std::span<const std::string_view> arguments);
    /// Sends one command and doesn't wait for the answer. Throws `connection_lost`.
    void send(std::initializer_list<std::string_view> arguments);
    /// Sends these bytes as they are. Throws `connection_lost`.
    void send_bytes(std::string_view bytes);
    /// Reads the next answer. Throws `connection_lost`, with ETIMEDOUT when none comes within the limit.
    reply receive();
    /// Whether there is anything to read, waited for at most this long: bytes, or the end of the connection.
    bool wait_readable(std::chrono::milliseconds at_most);
    /// The bytes that came up to the end of the connection, at most `limit` of them. Throws like `receive`,
    /// but not at an orderly end.
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
