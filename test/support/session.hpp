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

/// When the connection is closed, relative to an answer.
enum class closing
{
    never,         ///< the connection stays open
    before,        ///< instead of answering
    in_the_middle, ///< after half of the bytes
    after,         ///< after the last byte
};

/// The bytes sent for a command, and how they are sent.
struct answer
{
    /// The exact bytes. If empty, the command is never answered.
    std::string bytes = {};
    /// The delay after the command. Later answers wait for earlier ones, as those of a real server do.
    std::chrono::milliseconds delay{0};
    /// How many times the bytes are sent.
    std::size_t times = 1;
    /// Sends each byte with a separate write.
    bool single_bytes = false;
    /// When the connection is closed.
    closing close = closing::never;
};

/// A client's connection. It belongs to the thread of its script; only `abort` may be called from other threads.
class session
{
  public:
    /// The most answers that wait for their time.
    static constexpr std::size_t max_waiting_answers = 100'000;

    session(unique_fd socket, std::size_t number, std::function<void(const command&)> on_command);
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() = default;

    /// Returns 1 for the first connection that the server accepted, and so on.
    std::size_t number() const { return number_; }
    /// Waits for the next command; meanwhile, sends answers that become due. Empty if the connection has ended or was
    /// closed by the script or by `abort`. Throws `malformed_request`.
    std::optional<command> read_command();
    /// Sends an answer when its time has come, after all earlier ones.
    void send(answer what);
    /// Sends bytes at once.
    void write(std::string_view bytes);
    /// Shuts down the sending side (FIN). The connection is closed when the script returns.
    void close();
    /// Resets the connection (RST).
    void reset();
    /// Ends the connection from any thread: at CLIENT KILL, and when the server ends.
    void abort();
    /// Sends the answers that wait for their time, then closes the connection once the client has, or after a timeout.
    void finish();

  private:
    using clock = std::chrono::steady_clock;

    /// The state of the connection.
    enum class state
    {
        open,    ///< in both directions
        closing, ///< nothing more is sent; input is discarded
        ended,   ///< in neither direction
    };

    struct waiting_answer
    {
        clock::time_point due;
        answer what;
    };

    void deliver(const answer& what);
    void send_what_is_due();
    bool wait(short events, clock::time_point until = clock::time_point::max());
    void receive();

    std::mutex mutex_; // Protects the socket, so that abort() never uses a closed descriptor.
    unique_fd socket_;
    const std::size_t number_;
    std::function<void(const command&)> on_command_;
    request_reader reader_;
    std::deque<waiting_answer> waiting_;
    state state_ = state::open;
    std::atomic<bool> aborted_ = false;
};

} // namespace redlock::test
