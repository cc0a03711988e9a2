// SPDX-License-Identifier: BSL-1.0
// One client's connection through the proxy: two pipes, each with a queue. Runs on the proxy's thread.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace redlock::test
{

namespace asio = boost::asio;

/// The treatment of the bytes of one direction. Used on the proxy's thread only.
struct direction_faults
{
    std::chrono::microseconds delay{0};
    bool hold = false;
    bool drop = false;
    bool split = false;
};

/// The faults of both directions.
struct proxy_faults
{
    direction_faults to_server;
    direction_faults to_client;
};

/// The state that the test reads and waits for. For all threads, protected by the mutex.
struct proxy_counters
{
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t accepted = 0;
    std::size_t connections = 0;
    std::size_t bytes_to_server = 0;
};

/// Called on the proxy's thread with the bytes of one connection: those for the server unless they are discarded, and
/// those from the server as it sent them. `link`: how many connections were accepted before this one.
using proxy_tap = std::function<void(std::size_t link, bool to_server, std::string_view bytes)>;

/// A client's connection and the one to the server.
class proxy_link : public std::enable_shared_from_this<proxy_link>
{
  public:
    /// How many bytes are queued in one direction before reading stops.
    static constexpr std::size_t queue_limit = 1024 * 1024;

    /// The tap may be empty.
    proxy_link(
        asio::ip::tcp::socket client, const proxy_faults& faults, proxy_counters& counters,
        const proxy_tap& tap);

    /// Connects to the server and starts forwarding.
    void start(const asio::ip::tcp::endpoint& upstream);
    /// Applies the current holds; items that are no longer held are delivered.
    void follow_holds();
    /// Resets both connections (RST).
    void reset();
    /// Closes both connections (FIN), then reads until the peers have closed, too.
    void close_orderly();
    /// Resets the client's connection; what is queued for the server stays, followed by an end.
    void close_client_side();
    /// True if both connections have ended and the link can be destroyed.
    bool finished() const;

  private:
    using clock = std::chrono::steady_clock;

    /// The way a direction ends.
    enum class ending
    {
        none,  ///< it doesn't end: the item has bytes
        fin,   ///< FIN
        reset, ///< RST
    };

    /// The state of reading one direction.
    enum class reader
    {
        idle,    ///< not reading: at the start, or the queue is full
        waiting, ///< a read is in progress
        ended,   ///< the source has ended
    };

    /// The state of writing one direction.
    enum class writer
    {
        unconnected, ///< not connected to the destination
        idle,        ///< no write is in progress
        writing,     ///< a write is in progress
        ended,       ///< nothing more is delivered; what arrives is discarded
    };

    struct item
    {
        clock::time_point due;
        std::string bytes;
        ending end = ending::none;
    };

    struct pipe
    {
        pipe(
            asio::ip::tcp::socket& source, asio::ip::tcp::socket& destination,
            const direction_faults& its_faults)
            : from{source}, to{destination}, faults{its_faults}, timer{source.get_executor()}
        {
        }

        asio::ip::tcp::socket& from;
        asio::ip::tcp::socket& to;
        const direction_faults& faults;
        asio::steady_timer timer;
        std::array<char, 16384> input{};
        std::deque<item> queue{};
        std::size_t queued = 0;
        std::string output{};
        bool held = false;
        reader reading = reader::idle;
        writer writing = writer::unconnected;
    };

    void connected(const boost::system::error_code& error);
    void read(pipe& direction);
    void on_read(pipe& direction, const boost::system::error_code& error, std::size_t count);
    void push(pipe& direction, std::string bytes, ending end);
    void pump(pipe& direction);
    void on_written(pipe& direction, const boost::system::error_code& error);
    void end_writing(pipe& direction);
    void deliver_end(pipe& direction, ending end);
    void client_has_gone();
    void finish_if_over();
    void close_both();

    proxy_counters& counters_;
    const proxy_tap& tap_;
    std::size_t number_ = 0;
    asio::ip::tcp::socket client_;
    asio::ip::tcp::socket server_;
    pipe to_server_;
    pipe to_client_;
    bool counted_ = true;
};

} // namespace redlock::test
