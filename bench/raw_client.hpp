// SPDX-License-Identifier: BSL-1.0
// The reference: the least that a client on epoll can do. Commands formatted once, one write to each master for all that
// there is to say to it, and each pair goes on at its majority. No deadlines, no retries, no reconnects: it is no lock to
// be used.
#pragma once

#include "client.hpp"

#include "support/loopback.hpp"
#include "support/server.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace redlock::bench
{

/// Throws when a master refuses, breaks off or doesn't answer: the reference is only measured with healthy
/// ones.
class raw_client final : public client
{
  public:
    explicit raw_client(std::span<test::server> masters);

    stretch run(const work& what) override;

  private:
    /// One after the other: acquire, release, and again.
    struct worker
    {
        std::string acquire;
        std::string release;
        std::size_t owner_in_acquire = 0; // Where the owner id stands.
        std::size_t owner_in_release = 0;
        stopwatch::clock::time_point asked{};
        std::uint32_t command = 0; // The number of the last one.
        std::size_t votes = 0;     // For that one.
        bool acquiring = false;
    };
    struct question
    {
        std::uint32_t worker;
        std::uint32_t command;
    };
    struct connection
    {
        test::unique_fd socket;
        std::string output;               // What is to be said next.
        std::vector<question> unanswered; // A ring: replies come in this order.
        std::size_t oldest = 0;
        std::size_t count = 0;
        char first = '\0'; // Of the reply that is being read, '\0' before it.
    };

    void add_workers(std::size_t count);
    void ask(worker& by, const std::string& command);
    void begin_pair(worker& by, stopwatch& watch);
    void on_majority(worker& by, stopwatch& watch);
    void send_all();
    void wait(stopwatch& watch);
    void take_replies(connection& from, stopwatch& watch);
    void on_reply(connection& from, stopwatch& watch);

    std::string digest_;
    test::unique_fd epoll_;
    std::vector<connection> connections_;
    std::vector<worker> workers_;
    std::size_t unanswered_ = 0; // On all connections.
};

} // namespace redlock::bench
