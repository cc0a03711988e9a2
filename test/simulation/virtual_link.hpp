// SPDX-License-Identifier: BSL-1.0
// One virtual connection: its two ends, and the network between them.
#pragma once

#include "support/request_reader.hpp"
#include "virtual_world.hpp"

#include <redlock/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

class sim_master;

/// The delays of a network: drawn for each piece, from the delay to the delay plus jitter.
struct latency
{
    clock::duration there = std::chrono::microseconds{100};
    clock::duration back = std::chrono::microseconds{100};
    clock::duration jitter{0};
    /// The maximum size of a piece of a reply; 0 for whole replies.
    std::size_t piece = 0;
    /// Cuts a connection at the n-th send of its client, which is lost; 0 for never.
    std::size_t breaks_at = 0;
    /// A client that closes its end loses what hasn't arrived, as with TCP if a reply arrives after that or wasn't read.
    bool close_resets = false;
    /// What one end sends at one time arrives at one time, and the client reads it at once, or in parts with
    /// `ties::by_chance`.
    bool joins = false;
    /// Nothing arrives in this direction until `heal`.
    bool cut_there = false;
    bool cut_back = false;
    /// Nothing arrives in either direction for this process until `heal`.
    std::optional<int> cut_off{};
};

/// The client's end of a connection.
class client_end
{
  public:
    virtual void on_connected(error_code error) = 0;
    virtual void on_bytes(std::string_view bytes) = 0;
    /// The master takes bytes again.
    virtual void on_room() = 0;
    /// The last notification.
    virtual void on_end(error_code why) = 0;

  protected:
    ~client_end() = default;
};

/// The state of a client at a master.
struct client_state
{
    int origin = 0;      // The process of the client.
    std::int64_t id = 0; // 0 until it is accepted, and again when it is closed.
    int protocol = 2;
    std::size_t database = 0;
    bool authenticated = false;
    bool was_greeted = false; // With RESP3, before.
    bool ended = false;       // The client closed its end; what it sent before is still executed.
    bool got_nonsense = false;
    std::vector<std::string> channels{}; // To which it is subscribed.
    request_reader requests{};
};

/// Delivers bytes in order in each direction, after the master's latency. Closing an end doesn't revoke what it has
/// sent, unless that resets the connection; a server that closes its own end doesn't read what is in flight.
class virtual_link final : public std::enable_shared_from_this<virtual_link>
{
  public:
    virtual_link(virtual_world& world, sim_master& master, client_end& client, int origin)
        : world_{world}, master_{master}, client_{&client}
    {
        at_master_.origin = origin;
    }

    // The client's end.
    void connect();
    /// `late`: the bytes may have waited for room.
    void send(std::string bytes, bool late = false);
    void close() noexcept;
    /// Returns false while the master's buffers are full. The client is notified when they have room again.
    bool takes_bytes();
    /// The client has bytes that wait for room.
    void wait_for_room();

    // The master's end.
    client_state& at_master() noexcept { return at_master_; }
    void reply(const std::string& bytes);
    /// Calls `what` when all replies so far have arrived.
    void behind_replies(std::function<void()> what) { to_client(std::move(what)); }
    /// The client sees `why` after the replies.
    void close_by_master(error_code why);

    // The network.
    /// Holds everything in flight to the master, and everything sent later.
    void hold() noexcept { there_.held = true; }
    void let_go() { deliver(there_); }
    /// Holds the replies.
    void hold_replies() noexcept { back_.held = true; }
    void let_go_of_replies() { deliver(back_); }
    /// Resets the client's end. The master gets what was sent, then the end of the connection.
    void break_off();
    /// Resets both ends: what was in flight is lost.
    void cut();
    /// Ends the connection for one side only. After `end_for_master` the client gets no more answers.
    void end_for_client();
    void end_for_master();
    /// Delivers what a cut direction held, unless the link itself is held.
    void go_on();
    bool open() const noexcept { return client_ != nullptr; }
    void tell_room()
    {
        if (client_ != nullptr)
        {
            client_->on_room();
        }
    }

  private:
    using arrival = std::function<void()>;

    /// What is on its way to one end.
    struct direction
    {
        clock::duration latency::*delay;
        bool latency::*is_cut;
        clock::time_point last{};
        clock::time_point sent{};        // When something was last sent.
        std::deque<arrival> in_flight{}; // Keeps the order of sending for arrivals at the same time.
        bool held = false;
        std::vector<arrival> waiting{}; // Held in the network.
    };

    void begin_to_owe();
    clock::duration silence() const;
    void answered(std::size_t up_to);
    bool is_held(const direction& way) const;
    void transmit(direction& way, arrival what);
    void to_client(arrival what);
    bool is_heard() const noexcept { return client_ != nullptr && !ended_for_client_; }
    void on_piece(std::string_view bytes);
    void hand_over();
    void arrive(direction& way);
    static void deliver(direction& way);

    virtual_world& world_;
    sim_master& master_;
    client_end* client_; // Null after the client closed its end.
    client_state at_master_;
    direction there_{&latency::there, &latency::cut_there};
    direction back_{&latency::back, &latency::cut_back};
    std::size_t sent_ = 0;
    std::size_t sent_bytes_ = 0;
    std::size_t arrived_bytes_ = 0;
    bool waits_for_room_ = false;
    std::optional<clock::time_point> owes_since_; // The master owes a reply, or room.
    clock::duration unread_silence_{}; // The longest one that ended while the process was suspended.
    bool ended_for_client_ = false;
    std::string unread_; // Arrived at the client's end, in one read with what else arrives now.
};

} // namespace redlock::test
