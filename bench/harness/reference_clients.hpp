// SPDX-License-Identifier: BSL-1.0
// The reference clients, and the protocol that they share.
#pragma once

#include "harness/client.hpp"

#include "support/loopback.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/circular_buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// Formats the commands once, and evaluates the replies: a pair continues at its majority. The transport is left to the
/// client.
class reference_protocol
{
  public:
    /// Loads the release script into the masters on these loopback ports. `kind` is the first part of the resource
    /// names.
    reference_protocol(std::span<const int> ports, std::string_view kind);

    /// Begins the first pair of every worker.
    void start(const workload& load, stopwatch& watch);
    /// Returns the bytes to send to this master. The caller removes what it has sent.
    std::string& output(std::size_t master) { return masters_[master].output; }
    /// Processes received bytes, split anywhere. Throws if the master refused a command.
    void receive(std::size_t from, std::string_view bytes, stopwatch& watch);
    /// Returns whether all pairs are complete and the minority has answered as well.
    bool idle() const { return unanswered_ == 0; }

  private:
    /// Acquires and releases in a loop.
    struct worker
    {
        std::string acquire;
        std::string release;
        std::size_t owner_in_acquire = 0; // The offset of the owner id.
        std::size_t owner_in_release = 0;
        stopwatch::clock::time_point started{};
        std::uint32_t command = 0; // The number of the current command.
        std::size_t votes = 0;     // For the current command.
        bool acquiring = false;
    };
    struct sent_command
    {
        std::uint32_t worker;
        std::uint32_t command;
    };
    struct master_state
    {
        std::string output;
        boost::circular_buffer<sent_command> unanswered; // Replies arrive in this order.
        char first_byte = '\0';                          // Of the current reply; '\0' if none has begun.
    };

    void add_workers(std::size_t count);
    void broadcast(worker& sender, const std::string& command);
    void begin_pair(worker& sender, stopwatch& watch);
    void on_majority(worker& sender, stopwatch& watch);
    void on_reply(master_state& from, stopwatch& watch);

    std::string kind_;
    std::string digest_;
    std::vector<master_state> masters_;
    std::vector<worker> workers_;
    std::size_t unanswered_ = 0; // Of all masters.
};

/// The reference: a minimal client on epoll. All pending commands for a master are sent with one write. It has no
/// deadlines, retries or reconnects, so it can't be used as a lock. Throws if a master refuses a command, closes the
/// connection or doesn't answer. It is only measured with healthy masters.
class raw_client final : public client
{
  public:
    /// Connects to the masters on these ports of the loopback interface.
    explicit raw_client(std::span<const int> ports);

    run_record run(const workload& load) override;

  private:
    void send_all();
    void wait(stopwatch& watch);
    void receive(std::size_t master, stopwatch& watch);

    test::unique_fd epoll_;
    std::vector<test::unique_fd> sockets_;
    reference_protocol protocol_;
};

/// The second reference, on Boost.Asio, which shows how much of the library's cost is Asio's. It sends the same
/// commands. Throws if a master refuses a command or closes the connection. It has no timeout, so it is only measured
/// with healthy masters.
class asio_client final : public client
{
  public:
    /// Connects to the masters on these ports of the loopback interface.
    explicit asio_client(std::span<const int> ports);

    run_record run(const workload& load) override;

  private:
    struct connection
    {
        boost::asio::ip::tcp::socket socket;
        std::array<char, 16384> buffer{};
    };

    void send_all();
    void receive(std::size_t master);
    void on_received(std::size_t master, std::size_t bytes);

    boost::asio::io_context io_{1};
    std::vector<connection> connections_;
    reference_protocol protocol_;
    stopwatch* watch_ = nullptr; // Of the current run.
};

} // namespace redlock::bench
