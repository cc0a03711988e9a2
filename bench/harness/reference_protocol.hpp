// SPDX-License-Identifier: BSL-1.0
// What the reference clients say to the masters, and what they make of the replies, whatever carries it: commands that are
// formatted once, and each pair goes on at its majority.
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
    /// Of the masters, on the loopback interface. `kind` is what its resources are named after.
    reference_protocol(std::span<const int> ports, std::string_view kind);

    /// Every worker begins its first pair.
    void start(const workload& load, stopwatch& watch);
    /// What is to be said next to this master. Who has said it takes it away.
    std::string& output(std::size_t master) { return masters_[master].output; }
    /// What this master has said, in parts of any size. Throws when it refuses.
    void receive(std::size_t from, std::string_view bytes, stopwatch& watch);
    /// Nobody is in a pair, and the minority has answered, too.
    bool idle() const { return unanswered_ == 0; }

  private:
    /// One after the other: acquire, release, and again.
    struct worker
    {
        std::string acquire;
        std::string release;
        std::size_t owner_in_acquire = 0; // Where the owner id stands.
        std::size_t owner_in_release = 0;
        stopwatch::clock::time_point started{};
        std::uint32_t command = 0; // The number of the last one.
        std::size_t votes = 0;     // For that one.
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
        std::vector<sent_command> unanswered; // A ring: replies come in this order.
        std::size_t oldest = 0;
        std::size_t count = 0;
        char first_byte = '\0'; // Of the reply that is being read, '\0' before it.
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
    std::size_t unanswered_ = 0; // By all masters.
};

} // namespace redlock::bench
