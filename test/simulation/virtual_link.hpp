// SPDX-License-Identifier: BSL-1.0
// One virtual connection: its two ends, and the network between them.
#pragma once

#include "support/request_reader.hpp"
#include "virtual_world.hpp"

#include <redlock/error.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

class scripted_master;

/// What the client's end of a connection is told.
class client_end
{
  public:
    virtual void on_connected(error_code error) = 0;
    virtual void on_bytes(std::string_view bytes) = 0;
    /// The master takes bytes again.
    virtual void on_room() = 0;
    /// The last thing that it is told.
    virtual void on_end(error_code why) = 0;

  protected:
    ~client_end() = default;
};

/// What a master knows of a client.
struct client_state
{
    int origin = 0;      // Which process it belongs to.
    std::int64_t id = 0; // 0 until it is accepted, and again when it is closed.
    int protocol = 2;
    bool authenticated = false;
    bool ended = false; // The client closed its end; what it sent before is still done.
    bool got_nonsense = false;
    request_reader requests{};
};

/// Bytes arrive in each direction in their order, after the master's latency. An end that closes doesn't take back
/// what it sent: only a server that closes its own end never sees it.
class virtual_link final : public std::enable_shared_from_this<virtual_link>
{
  public:
    virtual_link(virtual_world& world, scripted_master& master, client_end& client, int origin)
        : world_{world}, master_{master}, client_{&client}
    {
        at_master_.origin = origin;
    }

    // The client's end.
    void connect();
    void send(std::string bytes);
    void close() noexcept;
    /// Whether the master's end takes bytes at all, or its buffers are full. The client is told when it does again.
    bool takes_bytes();

    // The master's end.
    client_state& at_master() noexcept { return at_master_; }
    void reply(const std::string& bytes);
    /// `what` is done when the replies so far have arrived.
    void behind_replies(std::function<void()> what) { to_client(std::move(what)); }
    /// The client sees `why` behind the replies.
    void close_by_master(error_code why);

    // The network.
    /// What is on its way to the master, and what the client sends from now on, waits.
    void hold() noexcept { held_ = true; }
    void let_go();
    /// The same for the replies.
    void hold_replies() noexcept { replies_held_ = true; }
    void let_go_of_replies();
    /// The client sees a reset. The master gets what was sent, and then its end.
    void break_off();
    /// The same on both sides at once: what was under way never arrives.
    void cut();
    /// Only the client sees an end; only the master does, and the client gets no answer any more.
    void end_for_client();
    void end_for_master();
    /// What was held for its direction goes on, unless it is held for itself as well.
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

    void to_master(arrival what);
    void to_client(arrival what);
    void arrive_at_master();
    void arrive_at_client();

    virtual_world& world_;
    scripted_master& master_;
    client_end* client_; // Null once nobody listens there.
    client_state at_master_;
    clock::time_point last_to_master_{};
    clock::time_point last_to_client_{};
    // Whatever else happens at a time: what was sent first arrives first.
    std::deque<arrival> on_the_way_there_;
    std::deque<arrival> on_the_way_back_;
    std::size_t sent_ = 0;
    bool ended_for_client_ = false;
    bool held_ = false;
    bool replies_held_ = false;
    std::vector<arrival> waiting_; // In the network, held.
    std::vector<arrival> waiting_replies_;
};

} // namespace redlock::test
