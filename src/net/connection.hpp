// SPDX-License-Identifier: BSL-1.0
// The connection to one master: connects, performs the handshake, carries commands, and reconnects.
#pragma once

#include <redlock/config.hpp>
#include <redlock/examination.hpp>
#include <redlock/observer.hpp>

#include "core/backoff.hpp"
#include "core/clock_watch.hpp"
#include "net/ledger.hpp"
#include "net/pipeline.hpp"
#include "net/pushes.hpp"
#include "net/queue_commands.hpp"
#include "net/stale_connection_guard.hpp"
#include "net/subscription.hpp"
#include "resp/parser.hpp"
#include "runtime/environment.hpp"
#include "runtime/parted_time.hpp"
#include "runtime/tasks.hpp"

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

/// The reason why a connection isn't ready.
struct failure
{
    // Not an aggregate: g++ 12.2 destroys an aggregate that contains a string twice in a co_await expression.
    failure() = default;
    failure(error_code why, std::string text) : reason{why}, detail{std::move(text)} {}

    error_code reason;
    std::string detail; // The server's text or a description, without passwords that were sent. Often empty.
};

/// The facts about a server that the handshake found. Empty if the server doesn't reveal them.
struct server_info
{
    std::string server;                // "redis" or "valkey".
    std::string version;               // "7.0.15".
    std::string maxmemory_policy;      // "noeviction".
    bool has_run_id = false;           // The server answered INFO with its run id.
    bool may_kill_connections = false; // Our client id is known, and CLIENT KILL is permitted.
};

/// The callbacks of a connection to its manager. Called on the strand.
class connection_owner
{
  public:
    /// A master has announced its run id. Returns false if another master has announced it first.
    virtual bool claim_run_id(std::size_t master, std::string_view run_id) = 0;
    /// The connection has become ready.
    virtual void on_up(std::size_t master, std::string_view run_id) = 0;
    /// The connection has broken, or an attempt to connect has failed.
    virtual void on_down(std::size_t master, const failure& why) = 0;
    /// The master has a configuration or clock problem that weakens locking, or refuses a release permanently.
    virtual void on_risk(std::size_t master, risk what, std::string detail) = 0;
    /// The master's clock deviates from ours by more than the permitted drift.
    virtual void on_clock_off(std::size_t master, const core::clock_deviation& off) = 0;
    /// A message has arrived for a waiting client. Returns false if there has never been such a client.
    virtual bool on_wake_up(std::size_t master, const wake_up& message) = 0;
    /// The last outstanding key of a master has been cleared by a reply.
    virtual void on_nothing_outstanding() = 0;
    /// The connection has ended permanently, after `stop`.
    virtual void on_stopped(std::size_t master) = 0;

  protected:
    ~connection_owner() = default;
};

/// The timing and the limits of a connection.
struct connection_options
{
    std::chrono::milliseconds connect_timeout;
    core::backoff_policy reconnect;
    std::chrono::milliseconds probe_interval;
    std::chrono::milliseconds response_timeout;
    std::size_t max_outstanding_keys;
    std::size_t max_write_queue_bytes;
    std::string client_name;
    double drift_factor;
    std::string channel; // On which the manager receives messages.
    std::string key_prefix;
    bool guarded = false;
};

/// The connection to one master, and everything that has to survive its reconnects: the outstanding keys, and the stale
/// connections that may still run a SET.
///
/// A coroutine drives it, from `start` until after `stop`, through these states:
///
/// - *connecting*: the stream connects and the handshake runs (handshake.cpp), both within `connect_timeout`, of
///   which a process that is suspended loses a part only. If that succeeds, the connection is ready and `on_up` is called.
/// - *ready*: commands are accepted. Left if the stream ends, the server sends invalid data or is no longer a usable
///   master, or no reply is received for `response_timeout` while a command is in flight.
/// - *draining*: follows *ready* after `stop`. Only releases are accepted. Left when all of them have been answered, also those
///   that are repeated, and after `response_timeout`. A socket that is closed with replies unread loses what it has sent.
/// - *broken*: entered from all states above. Each command in flight receives its vote, and `on_down` is called. Once
///   pending I/O has ended and a random delay has passed, the connection connects again.
/// - *stopped*: permanent; follows *broken* after `stop`. `on_stopped` is called once, as the last callback.
///
/// Everything runs on the manager's strand. Operations call the `send_` functions, which only queue a command
/// (sending.cpp); the queue is written at the end of the step, with one write. A read or write that finishes resumes
/// the coroutine, which parses the replies and passes them to the pipeline. The pipeline matches each reply to its
/// command, updates the ledger and delivers the vote. A single deadline serves the connect timeout, the reconnect
/// delay, the probes, the response timeout and the releases that were put off.
///
/// Guarantees:
/// - Each command with a vote sink leads to one vote (or the reply to a query): within the call if it can't be sent,
///   otherwise in a later step, at the latest when the connection breaks.
/// - A command whose fate is unknown is never sent again, except for releases.
/// - A key whose SET may have run stays in the ledger until its release is answered, over any number of connections.
///   The first releases on a new connection are sent ahead of any new SET.
/// - No SET is sent until the stale connections to the same server have been killed, if the server permits that.
class connection final : private runtime::step_end_hook, private runtime::deadline
{
  public:
    connection(
        runtime::scheduler& strand, const runtime::environment& outside, const connection_options& options,
        const master& to, std::size_t index, connection_owner& owner);

    runtime::scheduler& strand() noexcept { return strand_; }

    /// Starts the coroutine, which connects, and reconnects, until `stop` is called.
    void start();
    /// Closes the connection permanently, after the releases that have been begun, or are begun in this step, were answered.
    /// `on_stopped` follows, but not within the call.
    void stop();

    bool ready() const noexcept { return state_ == state::ready; }
    /// Returns whether a release may be sent, also after `stop`.
    bool takes_releases() const noexcept { return ready() || state_ == state::draining; }
    const std::string& run_id() const noexcept { return stale_connections_.run_id(); }
    /// Returns whether messages to the manager arrive here. Meaningful only when ready.
    bool subscribed() const noexcept { return subscription_.is_proven(); }
    /// Returns whether it can be a queue master.
    bool queues() const noexcept { return ready() && !commands_.refuses_questions(); }
    /// Returns whether it refuses releases, so that it should be one only if there is no other.
    bool refuses_releases() const noexcept { return commands_.refuses_releases(); }
    /// Returns the reason why the connection isn't ready.
    const failure& last_failure() const noexcept { return last_failure_; }
    /// Returns the facts about the server. Meaningful only when ready, like `risks`.
    const server_info& server() const noexcept { return server_; }
    /// Returns the problems that follow from these facts.
    std::vector<master_issue> risks() const;
    /// Returns the readings of the server's clock.
    const core::clock_watch& clock_readings() const noexcept { return clock_watch_; }
    /// Returns the outstanding keys.
    const ledger& outstanding() const noexcept { return outstanding_; }

    // Each of these functions leads to one vote, within the call if the command can't be sent.
    void send_set(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    void send_guarded_set(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    void send_ask(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    void send_raise(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    void send_extend(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    /// Sends a query of a broadcast. Leads to one reply, or to one vote with the reason why there is none.
    void send_query(std::string_view command, vote_sink& votes, clock::time_point now);
    /// Sends a release. If it can't be sent now, the key becomes due, and its release is sent when the connection is
    /// ready. `votes` may be null.
    void send_release(claim& of, const release_command& command, vote_sink* votes, clock::time_point now);
    /// Sends a SET to a master that lost the key or never had it, if possible. There is no vote.
    void rejoin(claim& of, std::string_view command);

  private:
    // In their order: the first three may read and write.
    enum class state
    {
        connecting, // Connecting, and handshake.
        ready,      // Commands may be sent.
        draining,   // Releases may be sent.
        broken,     // Waiting for pending I/O and the reconnect delay.
        stopped     // Permanently.
    };

    runtime::detached_task run();
    runtime::task<failure> connect();
    runtime::task<failure> serve();

    // The handshake: handshake.cpp.
    runtime::task<failure> handshake();
    runtime::task<failure> send_hello();
    runtime::task<failure> log_in_with_resp2();
    runtime::task<failure> query_server_info(std::int64_t client_id);
    runtime::task<failure> kill_stale_connections();
    runtime::task<failure> subscribe();
    runtime::task<const resp::reply*> next_reply(resp::kind expected);
    runtime::task<const resp::reply*> next_reply();
    failure broken_handshake() const;

    std::uint64_t random_number() const;
    failure take_replies();
    bool accepts(const resp::reply& push);
    failure io_failure() const;
    /// Returns whether a connection that was ready may have failed. Costs less than `io_failure`.
    bool is_disturbed() const noexcept
    {
        return stopping_ || reading_.error || writing_.error || unresponsive_;
    }
    bool is_draining() const noexcept;
    void report_refused_subscription();
    void check_clock();
    void check_refusals();
    void report_refusals();
    void become_ready();
    void break_off(const failure& why);
    error_code full(std::size_t bytes) const noexcept;
    bool may_send(vote_sink& votes, clock::time_point now);
    void sent_if(bool has_room, std::size_t bytes, vote_sink& votes, clock::time_point now);
    bool may_claim(claim& of, std::string_view command, vote_sink& votes, clock::time_point now);
    void start_io();
    void watch(clock::time_point now);
    clock::time_point response_deadline() const noexcept;

    void on_step_end() override;
    void on_deadline() override;

    runtime::scheduler& strand_;
    const runtime::environment& outside_;
    const connection_options& options_;
    const master& to_;
    std::size_t index_;
    connection_owner& owner_;

    state state_ = state::broken;
    bool stopping_ = false;
    clock::time_point drained_by_{}; // The end of *draining* at the latest.
    bool overdue_ = false;
    bool unresponsive_ = false;
    std::size_t first_address_ = 0; // Of a name with several.
    std::string_view misfit_;       // Why a reply of the handshake can't be that to its command.
    subscription subscription_;
    push_guard pushes_;
    runtime::parted_time connect_time_;
    clock::time_point last_read_{};
    clock::time_point last_reply_{};
    clock::time_point last_probe_{};
    bool clock_hidden_ = false; // The server refuses TIME, which has been reported.
    core::clock_watch clock_watch_;
    failure last_failure_{master_errc::not_connected, {}};

    runtime::async_event wake_event_;
    runtime::io_operation connecting_{wake_event_};
    runtime::io_operation reading_{wake_event_};
    runtime::io_operation writing_{wake_event_};
    std::unique_ptr<runtime::stream> stream_;
    resp::parser parser_;
    ledger outstanding_;
    pipeline commands_;
    stale_connection_guard stale_connections_;
    server_info server_;
};

} // namespace redlock::net
