// SPDX-License-Identifier: BSL-1.0
// The commands of the reference clients, and the evaluation of the replies. Commands are formatted once, and a
// pair continues at its majority. The transport is left to the client.
#pragma once

#include "harness/client.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

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
        std::vector<sent_command> unanswered; // A ring buffer: replies arrive in this order.
        std::size_t oldest = 0;
        std::size_t count = 0;
        char first_byte = '\0'; // Of the current reply; '\0' if none has begun.
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

} // namespace redlock::bench
