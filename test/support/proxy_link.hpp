// SPDX-License-Identifier: BSL-1.0
// One client's connection through the proxy: two pipes, each with its queue. Lives on the proxy's thread.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace redlock::test
{

namespace asio = boost::asio;

/// What is done with the bytes of one direction. Only for the proxy's thread.
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

/// What the test can count and wait for. For all threads, under the mutex.
struct proxy_counters
{
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t accepted = 0;
    std::size_t connections = 0;
    std::size_t bytes_to_server = 0;
};

/// One client and its connection to the server.
class proxy_link : public std::enable_shared_from_this<proxy_link>
{
  public:
    /// How many bytes wait in one direction before it stops reading.
    static constexpr std::size_t queue_limit = 1024 * 1024;

    proxy_link(asio::ip::tcp::socket client, const proxy_faults& faults, proxy_counters& counters);

    /// Connects to the server and forwards.
    void start(const asio::ip::tcp::endpoint& upstream);
    /// Takes over the hold of the faults as they are now; what isn't held any more is delivered.
    void follow_holds();
    /// Ends both sides with RST.
    void reset();
    /// Ends both sides with FIN, then reads until the other sides have ended too.
    void close_orderly();
    /// RST to the client; what is queued for the server stays, with an end behind it.
    void close_client_side();
    /// Whether it is over and can be forgotten.
    bool finished() const;

  private:
    using clock = std::chrono::steady_clock;

    /// How a connection ends in one direction.
    enum class ending
    {
        none,  ///< it doesn't: these are bytes
        fin,   ///< orderly
        reset, ///< broken
    };

    /// Where the reading of one direction stands.
    enum class reader
    {
        idle,    ///< not reading: at the start, or the queue is full
        waiting, ///< a read is under way
        ended,   ///< the source has ended
    };

    /// Where the writing of one direction stands.
    enum class writer
    {
        unconnected, ///< the destination is not there yet
        idle,        ///< nothing is being written
        writing,     ///< a write is under way
        ended,       ///< nothing is delivered any more; what still arrives is thrown away
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
    asio::ip::tcp::socket client_;
    asio::ip::tcp::socket server_;
    pipe to_server_;
    pipe to_client_;
    bool counted_ = true;
};

} // namespace redlock::test
