// SPDX-License-Identifier: BSL-1.0
// One connection of the scripted server: commands in, any bytes out, at any time.
#pragma once

#include "loopback.hpp"
#include "request_reader.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::test
{

/// When an answer closes the connection.
enum class closing
{
    never,         ///< it stays open
    before,        ///< instead of answering
    in_the_middle, ///< after half of the bytes
    after,         ///< after the last byte
};

/// What is sent for a command, and how.
struct answer
{
    /// Exactly these. None: it is never answered.
    std::string bytes = {};
    /// How long after the command. Later answers wait for earlier ones, as those of a real server.
    std::chrono::milliseconds delay{0};
    /// How often the bytes are sent.
    std::size_t times = 1;
    /// Each byte with a write of its own.
    bool single_bytes = false;
    /// Whether the connection is closed at it.
    closing close = closing::never;
};

/// One client's connection. It belongs to the thread of its script; only `abort` is for others.
class session
{
  public:
    /// How many answers may wait for their time.
    static constexpr std::size_t most_waiting = 100'000;

    /// `stop` is a descriptor that becomes readable when the server ends.
    session(unique_fd socket, std::size_t number, int stop, std::function<void(const command&)> on_command);
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() = default;

    /// 1 for the first connection that the server took, and so on.
    std::size_t number() const { return number_; }
    /// Waits for the next command, and sends meanwhile what becomes due. Nothing when the connection has
    /// ended, was closed here, or the server ends. Throws `malformed_request`.
    std::optional<command> read_command();
    /// Sends an answer when its time has come, behind all earlier ones.
    void send(answer what);
    /// Sends bytes at once.
    void write(std::string_view bytes);
    /// Ends what is sent in an orderly way (FIN). The connection is closed when the script returns.
    void close();
    /// Ends the connection with RST.
    void reset();
    /// Ends the connection from any thread, as CLIENT KILL does.
    void abort();
    /// Sends what still waits for its time, then closes once the client has, or after a moment.
    void finish();

  private:
    using clock = std::chrono::steady_clock;

    /// Where the connection stands.
    enum class state
    {
        open,    ///< in both directions
        closing, ///< nothing more is sent; what comes is thrown away
        ended,   ///< nothing goes in either direction
    };

    struct waiting_answer
    {
        clock::time_point due;
        answer what;
    };

    void deliver(const answer& what);
    void send_what_is_due();
    bool wait(short events, std::optional<clock::time_point> until);
    void receive();

    std::mutex mutex_; // for the socket, so that abort never meets a descriptor that was closed
    unique_fd socket_;
    const std::size_t number_;
    const int stop_;
    std::function<void(const command&)> on_command_;
    request_reader reader_;
    std::deque<waiting_answer> waiting_;
    state state_ = state::open;
    std::atomic<bool> aborted_ = false;
};

} // namespace redlock::test
