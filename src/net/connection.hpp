// SPDX-License-Identifier: BSL-1.0
// The connection to one master: connects, shakes hands, carries commands, breaks, and connects again.
#pragma once

#include <redlock/config.hpp>
#include <redlock/examination.hpp>
#include <redlock/observer.hpp>

#include "core/backoff.hpp"
#include "core/clock_watch.hpp"
#include "env/environment.hpp"
#include "env/flow.hpp"
#include "net/fence.hpp"
#include "net/ledger.hpp"
#include "net/pipeline.hpp"
#include "net/pushes.hpp"
#include "resp/parser.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::net
{

/// Why a connection is not there.
struct failure
{
    // g++ 12.2 destroys an aggregate with a string twice in a co_await expression; one with a constructor it
    // doesn't.
    failure() = default;
    failure(error_code why, std::string said) : reason{why}, detail{std::move(said)} {}

    error_code reason;
    std::string detail; // What the server said, without anything that was sent to it. Often empty.
};

/// What a server told of itself in the handshake. Empty where it doesn't tell.
struct server_facts
{
    std::string server;           // "redis" or "valkey".
    std::string version;          // "7.0.15".
    std::string maxmemory_policy; // "noeviction".
    bool tells = false;           // It answered INFO.
    bool may_fence = false;       // Our client id is known, and connections may be killed.
};

/// What a connection asks and tells its manager. Called on the strand.
class connection_owner
{
  public:
    /// A master has announced its run id. False if another one had it first.
    virtual bool claim_run_id(std::size_t master, std::string_view run_id) = 0;
    virtual void on_up(std::size_t master, std::string_view run_id) = 0;
    virtual void on_down(std::size_t master, const failure& why) = 0;
    virtual void on_risk(std::size_t master, risk what, std::string detail) = 0;
    /// Everything that this master owed is answered.
    virtual void on_nothing_owed() = 0;
    /// For good, after `stop`.
    virtual void on_stopped(std::size_t master) = 0;

  protected:
    ~connection_owner() = default;
};

/// How a connection behaves in time.
struct connection_options
{
    std::chrono::milliseconds connect_timeout;
    core::backoff_policy reconnect;
    std::chrono::milliseconds ping_interval;
    std::chrono::milliseconds dead_after;
    std::size_t max_owed;
    std::size_t max_waiting_bytes;
    std::string client_name;
    double drift_factor;
};

class connection final : private env::end_of_turn, private env::deadline
{
  public:
    connection(
        env::scheduler& strand, const env::environment& outside, const connection_options& options,
        const master& to, std::size_t index, connection_owner& owner);

    env::scheduler& strand() noexcept { return strand_; }

    /// Connects, and goes on doing so until `stop`.
    void start();
    /// Breaks the connection for good. `on_stopped` follows.
    void stop();

    bool ready() const noexcept { return state_ == state::ready; }
    const std::string& run_id() const noexcept { return fence_.run_id(); }
    /// Why it isn't ready.
    const failure& last_failure() const noexcept { return last_failure_; }
    /// What the server told of itself, and what of that is less than it should be. Only when ready.
    const server_facts& facts() const noexcept { return facts_; }
    std::vector<found_risk> risks() const;
    /// Whether its first attempt has come to an end, however.
    bool tried() const noexcept { return ready() || last_failure_.reason != master_errc::not_connected; }
    const ledger& owed() const noexcept { return owed_; }

    // Each of these ends in one vote, at once if nothing is sent.
    void send_set(claim& of, std::string_view command, voter& votes, clock::time_point now);
    void send_turn(claim& of, std::string_view command, voter& votes, clock::time_point now);
    void send_extend(claim& of, std::string_view command, voter& votes, clock::time_point now);
    /// Ends in one reply, or in one vote that says why there is none.
    void send_question(std::string_view command, voter& asker, clock::time_point now);
    /// What can't be sent now is owed, and sent as soon as the master is back. `votes` may be null.
    void send_release(claim& of, std::string_view command, voter* votes, clock::time_point now);
    /// A SET for a master that lost the key, or never had it. Nobody waits for the answer.
    void rejoin(claim& of, std::string_view command, clock::time_point now);

  private:
    enum class state
    {
        connecting, // Until the handshake is done.
        ready,      // Commands may be sent.
        broken,     // Until the back-off is over.
        stopped     // For good.
    };

    env::flow run();
    env::task<failure> connect();
    env::task<failure> serve();

    // The handshake: handshake.cpp.
    env::task<failure> shake_hands();
    env::task<failure> say_hello();
    env::task<failure> log_in_with_resp2();
    env::task<failure> look_around(std::int64_t client_id);
    env::task<failure> put_up_fence();
    env::task<const resp::reply*> next_reply();
    failure broken_handshake() const;

    std::uint64_t random_number() const;
    failure take_replies();
    failure io_failure() const;
    void look_at_clock();
    void look_at_refusals();
    void become_ready();
    void break_off(const failure& why);
    error_code full(const error_code& otherwise) const noexcept;
    bool may_claim(claim& of, std::string_view command, voter& votes, clock::time_point now);
    void start_io();
    void watch(clock::time_point now);
    clock::time_point dead_at() const noexcept;

    void on_end_of_turn() override { start_io(); }
    void on_deadline() override;

    env::scheduler& strand_;
    const env::environment& outside_;
    const connection_options& options_;
    const master& to_;
    std::size_t index_;
    connection_owner& owner_;

    state state_ = state::broken;
    bool stopping_ = false;
    bool overdue_ = false;
    bool unresponsive_ = false;
    bool unasked_ = false; // The server answered, in the handshake, what wasn't asked yet.
    push_guard pushes_;
    clock::time_point handshake_ends_{};
    clock::time_point last_read_{};
    clock::time_point last_reply_{};
    clock::time_point last_probe_{};
    bool clock_hidden_ = false; // It refuses to tell its time, and that was said.
    core::clock_watch clock_watch_;
    failure last_failure_{master_errc::not_connected, {}};

    env::wake wake_;
    env::io_operation connecting_{wake_};
    env::io_operation reading_{wake_};
    env::io_operation writing_{wake_};
    std::unique_ptr<env::stream> stream_;
    resp::parser parser_;
    ledger owed_;
    pipeline commands_;
    fence fence_;
    server_facts facts_;
};

} // namespace redlock::net
