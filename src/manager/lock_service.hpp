// SPDX-License-Identifier: BSL-1.0
// The implementation of a lock_manager: its connections, operations and leases, all on one strand.
#pragma once

#include <redlock/config.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include "core/queue_master.hpp"
#include "core/validity.hpp"
#include "manager/deliver.hpp"
#include "manager/guard.hpp"
#include "manager/keeper.hpp"
#include "manager/lease_state.hpp"
#include "manager/manager_handle.hpp"
#include "manager/notifier.hpp"
#include "manager/redactor.hpp"
#include "manager/round.hpp"
#include "manager/wait_queues.hpp"
#include "net/connection.hpp"
#include "net/guard_commands.hpp"
#include "net/reserved_keys.hpp"
#include "net/run_ids.hpp"
#include "runtime/environment.hpp"
#include "runtime/tasks.hpp"

#include <boost/intrusive/set.hpp>

#include <bitset>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

/// The effect of a shutdown on a running operation.
enum class shutdown_policy : std::uint8_t
{
    stop,  // The operation ends with `closed`.
    finish // The shutdown waits for it: a release.
};

/// A running operation, as a local object of its coroutine. Registered so that it can be cancelled and waited for.
class active_operation
    : public boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
  public:
    active_operation(lock_service& service, std::uint64_t id, shutdown_policy policy = shutdown_policy::stop);
    active_operation(const active_operation&) = delete;
    active_operation& operator=(const active_operation&) = delete;
    ~active_operation();

    /// Makes the operation end with this error, unless it is completing already.
    void stop(error_code why) noexcept;
    /// The error to end with; empty while the operation may continue.
    error_code stopped() const noexcept { return stopped_; }

    runtime::async_event wake_event;

    struct by_id
    {
        bool operator()(const active_operation& left, std::uint64_t right) const noexcept
        {
            return left.id_ < right;
        }
        bool operator()(std::uint64_t left, const active_operation& right) const noexcept
        {
            return left < right.id_;
        }
    };
    friend bool operator<(const active_operation& left, const active_operation& right) noexcept
    {
        return left.id_ < right.id_;
    }

  private:
    friend class lock_service;

    lock_service& service_;
    std::uint64_t id_;
    shutdown_policy policy_;
    error_code stopped_;
};

/// Wakes an operation at a point in time.
class alarm_clock final : private runtime::deadline
{
  public:
    alarm_clock(runtime::scheduler& strand, runtime::async_event& waiting, clock::time_point at)
        : waiting_{waiting}
    {
        strand.arm(*this, at);
    }

  private:
    void on_deadline() override { waiting_.notify(); }

    runtime::async_event& waiting_;
};

/// Counts the commands in flight by which clients leave queues. A shutdown waits for them.
class farewells final : public net::vote_sink
{
  public:
    explicit farewells(lock_service& service) noexcept : service_{service} {}

    std::size_t pending = 0;

  private:
    void on_vote(std::size_t master, const net::answer& result, clock::time_point at) noexcept override;
    bool append_in_full(std::size_t, std::string&) const override { return false; }
    void recycle() noexcept override {}

    lock_service& service_;
};

/// The central class of a manager: owns the connections, and registers the operations and leases.
///
/// It is driven by three kinds of events, each of which is one step of its strand (runtime/scheduler.hpp):
///
/// - A call of the public API. `lock_manager.cpp` reaches this object through the `manager_handle` (enter.hpp), and starts
///   the operation's coroutine (operations.hpp). The coroutine registers itself as `active_operation`,
///   begins rounds by the `send_` functions, and waits for its `active_operation::wake_event`.
/// - An event of a connection. A reply becomes a vote of its `round`, which wakes the coroutine once the vote decides
///   something. `on_up`, `on_down` and the other functions of `connection_owner` report the state of the connection.
/// - A deadline: of a round (its node timeout), of a lease (its next extension or its loss, see keeper.hpp), or of a
///   waiting coroutine (`alarm_clock`).
///
/// The commands of a step are written at its end, and `complete` delivers results after it. No user code runs inside.
///
/// The manager handle owns this object. It ends in one of three ways: by `abort` when the `lock_manager` is destroyed, by
/// the `shut_down` operation, or without either when the execution context is destroyed. Handlers in flight keep it
/// alive. Leases refer to the manager handle only, and may outlive it.
class lock_service final : public std::enable_shared_from_this<lock_service>, private net::connection_owner
{
  public:
    /// Requires valid `options`.
    lock_service(
        std::shared_ptr<manager_handle> handle, asio::any_io_executor executor, config options,
        std::shared_ptr<const runtime::environment> outside);
    lock_service(const lock_service&) = delete;
    lock_service& operator=(const lock_service&) = delete;
    ~lock_service();

    /// Must be called once, before all other members. Throws `system_error` if the system provides no timer.
    void open();

    // All members below must be called on the strand.

    runtime::scheduler& strand() noexcept { return strand_; }
    const config& options() const noexcept { return options_; }
    const std::shared_ptr<const detail::master_names>& names() const noexcept { return names_; }
    std::chrono::milliseconds node_timeout(std::chrono::milliseconds ttl) const noexcept;
    core::timing timing(std::chrono::milliseconds ttl, std::chrono::milliseconds min_validity) const noexcept;
    core::lease_schedule schedule(
        std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> extend_every,
        std::optional<std::chrono::milliseconds> stop_margin) const noexcept;
    std::uint64_t random_number() const noexcept;

    /// True if new operations are refused.
    bool closing() const noexcept { return closing_; }
    /// Refuses new operations from now on. `closer` is woken by every event that the shutdown may be waiting for.
    void begin_closing(runtime::async_event& closer) noexcept
    {
        closing_ = true;
        shutdown_event_ = &closer;
    }
    /// Ends the notifications of the shutdown.
    void end_closing() noexcept { shutdown_event_ = nullptr; }
    void cancel(std::uint64_t operation) noexcept;
    void stop_all(error_code why) noexcept;
    /// Stops all operations except those that a shutdown waits for.
    void stop_for_shutdown(error_code why) noexcept;
    /// Closes the manager's handle, through which leases and new calls reach this object.
    void leave() noexcept { handle_->close(); }
    /// The error with which a new operation is refused; empty if it is accepted. The caller is counted already.
    error_code refusal() const noexcept
    {
        if (closing_)
        {
            return errc::closed;
        }
        return active_count_ > options_.max_operations ? error_code{errc::too_many_operations} : error_code{};
    }
    /// True if only the calling operation is running.
    bool is_alone() const noexcept { return active_count_ == 1; }
    std::size_t active_count() const noexcept { return active_count_; }
    /// Counts a release that no quorum confirmed, for the result of a shutdown.
    void count_unconfirmed_release() noexcept { ++unconfirmed_releases_; }
    std::size_t unconfirmed_releases() const noexcept { return unconfirmed_releases_; }
    /// Aborts all operations and closes the connections, without releasing leases.
    void abort();
    void close_connections();
    bool connections_stopped() const noexcept { return stopped_connections_ == connections_.size(); }

    /// Returns the time until which a first round waits for connections, unless it is woken: until a quorum of masters is
    /// ready or impossible, then `patience` for the others. In the past if every first connection attempt has ended.
    clock::time_point first_round_at(std::chrono::milliseconds patience) const noexcept;
    /// True while some master's first connection attempt is in progress.
    bool connecting() const noexcept { return connecting_; }

    detail::lease_state_ptr make_lease_state(std::string_view resource);
    awaited_round
    send_sets(lease_state& lease, std::chrono::milliseconds ttl, runtime::async_event& listener);

    /// The waiting clients, and what is known of their queues.
    wait_queues& queues() noexcept { return queues_; }
    /// Returns the queue master of a resource, chosen among the connected masters; empty if there is none.
    std::optional<std::size_t> queue_master_of(std::string_view resource) const noexcept;
    /// Does so by the hash of the key.
    std::optional<std::size_t> queue_master_of(std::uint64_t key, clock::time_point now) const noexcept;
    /// Returns the name under which a waiter queues at a master.
    net::queue_member member_at(std::size_t master, std::uint64_t number) const noexcept;
    /// Returns the number of the connection to a master. A reconnect changes it.
    std::uint64_t connection_number(std::size_t master) const noexcept { return connection_numbers_[master]; }
    /// Returns whether the key of a resource would be in the place of a key of the library.
    bool is_reserved(std::string_view resource) const noexcept { return reserved_.contains(resource); }

    /// The masters of the group in guarded mode; null in plain mode.
    guard* guarded() const noexcept { return guard_.get(); }
    net::connection& connection_to(std::size_t master) const noexcept { return *connections_[master]; }
    /// Describes what is wrong with a ttl for the group; empty if it isn't too long, and in plain mode.
    std::string group_complaint(std::chrono::milliseconds ttl) const
    {
        return guard_ ? guard_->ttl_complaint(ttl) : std::string{};
    }
    /// Notifies the observer of a problem of a master.
    void warn(std::size_t master, risk what, std::string detail) { on_risk(master, what, std::move(detail)); }
    /// A look at a master has ended.
    void on_looked();
    /// Appends the command by which a master votes in guarded mode: the question to the queue master, or a SET. If it doesn't
    /// vote, returns false, and `refused` is its vote.
    bool append_guarded(
        std::string& out, const round& of, std::size_t master, net::script_form form,
        net::answer& refused) const;
    /// Sends a raise of the counter of a master. It votes `unsent` if it isn't armed any more.
    void send_raise(round& of, std::size_t master, std::uint64_t token, net::vote_sink& votes);
    bool append_raise(
        std::string& out, const round& of, std::size_t master, std::uint64_t token,
        net::script_form form) const;
    void append_extend(
        std::string& out, const lease_state& lease, std::chrono::milliseconds ttl,
        net::script_form form) const;
    /// Returns whether other clients were recently seen to wait for the resource.
    bool is_contended(std::string_view resource) const noexcept;
    /// Records whether a master has other clients wait for the resource.
    void note_contention(const lease_state& lease, std::size_t master, bool others_wait) noexcept;
    /// Another master becomes the queue master of the resource for a while.
    void overrule(std::string_view resource, std::size_t queue_master);
    /// Begins a round by asking only the queue master.
    awaited_round
    ask(lease_state& lease, const net::question& asked, std::size_t queue_master,
        runtime::async_event& listener);
    /// Continues that round after a grant: sends the SET to all other masters.
    void send_other_sets(round& begun);
    /// Begins a round by a question to the queue master and a SET to all others.
    awaited_round send_sets_and_ask(
        lease_state& lease, const net::question& asked, std::size_t queue_master,
        runtime::async_event& listener);
    /// `listener` may be null.
    awaited_round
    send_extensions(lease_state& lease, std::chrono::milliseconds ttl, runtime::async_event* listener);
    awaited_round send_releases(lease_state& lease, runtime::async_event& listener);
    /// Adds a release that is held back.
    void add(listed_round& one) noexcept { held_back_.push_back(one); }
    /// Sends the one that the round holds back.
    void send_held_back_release(round& of, std::size_t master) noexcept;
    /// Sends a command to all masters, outside of any round.
    void broadcast(std::string_view command, net::vote_sink& votes);
    /// Sends a command to one master, outside of any round.
    void send_query(std::size_t master, std::string_view command, net::vote_sink& votes);
    /// Redacts the messages of servers for display.
    const redactor& redacted() const noexcept { return redactor_; }
    /// Returns what is known of the masters without asking them.
    std::vector<master_examination> describe_masters() const;
    /// Releases all keys that a lost round may have set, without waiting for the answers.
    void give_back(lease_state& lease);
    /// Does so, and leaves the queue at the queue master. `member` is empty for a client that wasn't in the queue.
    void give_back_and_leave(
        lease_state& lease, std::size_t queue_master, const std::optional<net::queue_member>& member);
    /// Does so, and keeps the position in the queue, for a client that comes again after a pause.
    void give_back_and_stay(
        lease_state& lease, std::size_t queue_master, const net::question& asked,
        std::chrono::milliseconds pause);
    /// Leaves the queue of a resource, and releases nothing.
    void leave_queue(
        std::string_view resource, std::chrono::milliseconds ttl, std::size_t queue_master,
        const net::queue_member& member);
    /// Leaves the queue, and releases the lease's key at the queue master.
    void leave_queue(lease_state& lease, std::size_t queue_master, const net::queue_member& member);
    void release_in_background(lease_state& lease);
    /// Releases the leases that were destroyed when there was no memory to do so.
    void retry_abandoned() { handle_->retry_abandoned(); }

    /// Ends a lease: invalidates it and stops its extensions. Returns false if it had ended before.
    bool begin_release(lease_state& held) noexcept;

    /// Registers a new lease, and keeps its state alive until its release begins, even if the lease is destroyed.
    void keep(lease_state& held) noexcept
    {
        intrusive_ptr_add_ref(&held);
        leases_.push_back(held);
    }
    /// Declares the loss when the validity ends, for an observer.
    void watch_expiry(lease_state& held);
    /// Starts to extend the lease in the background.
    void start_keeping(lease_state& held, const core::lease_schedule& schedule, time_limit max_hold);
    /// Declares the lease lost, which is final. Its keys are released only when its holder releases it.
    void lose(lease_state& held, errc why) noexcept;
    /// Declares the lease lost and its validity ended, because the masters reported that the key is missing or not ours.
    void disown(lease_state& held, const round& by) noexcept;
    /// Declares all kept leases lost. Returns the latest `keeper::confirmed_until`.
    clock::time_point lose_kept_leases(errc why) noexcept;
    bool has_kept_leases() const noexcept { return kept_leases_ > 0; }
    /// Returns any lease that isn't released, or null.
    lease_state* first_lease() noexcept { return leases_.empty() ? nullptr : &leases_.front(); }
    /// Returns the number of outstanding keys on the connected masters.
    std::size_t outstanding() const noexcept;
    /// Returns the number of commands in flight by which clients leave queues.
    std::size_t leaving() const noexcept { return farewells_.pending; }

    void on_extension_vote(round& of, std::size_t master) noexcept;
    void recycle(round& unused) noexcept;

    bool observed() const noexcept { return notifier_ != nullptr; }
    void notify(event what);
    /// Keeps the votes of a failed extension, which explain the loss that may follow. Keeps none if it has no memory for them.
    void keep_votes(lease_state& held, const round& failed, error_code result) noexcept;
    /// Reports a decided round to the observer, as the `number`th of its operation; after a release, reports that as
    /// well.
    void notify_round(const round& of, error_code result, std::uint32_t number, clock::duration validity);

    /// Completes an operation: the handler is called on its executor after this step, never inside the user's call. Not
    /// inlined, for the same reason as `detail::type_erase`.
    template <class Signature, class... Arguments>
    [[gnu::noinline]] void complete(detail::completion<Signature>& done, Arguments... arguments)
    {
        strand_.after_step([done = std::move(done), ... arguments = std::move(arguments)]() mutable
                           { deliver(std::move(done), std::move(arguments)...); });
    }

  private:
    friend class active_operation;
    friend class farewells;

    using active_set = boost::intrusive::set<active_operation, boost::intrusive::constant_time_size<false>>;
    using lease_set = boost::intrusive::list<
        lease_state, boost::intrusive::base_hook<lease_hook>, boost::intrusive::constant_time_size<false>>;

    awaited_round begin_round(
        redlock::operation what, lease_state& lease, std::chrono::milliseconds ttl,
        runtime::async_event* listener);
    void end_lost_lease(lease_state& held, const round* by) noexcept;
    void report_failed_extensions(lease_state& held);
    void confirm_extension(round& of) noexcept;
    bool can_be_queue_master(std::size_t master) const noexcept;
    void reconsider_queue_masters() noexcept;
    void rejoin(round& of, std::size_t master);
    std::optional<std::size_t> draw_second_queue(std::uint64_t key, std::size_t queue_master) const noexcept;
    std::uint64_t hash_of(std::string_view resource) const noexcept;
    void send_leave(lease_state& lease, std::size_t queue_master, const net::queue_member& member);
    template <class Append>
    void give_back_with(lease_state& lease, std::size_t queue_master, Append append);
    std::chrono::milliseconds grace_for(std::chrono::milliseconds ttl) const noexcept;
    void send_guarded(round& votes, std::size_t master);
    bool is_ready(std::size_t master) const noexcept;
    void note_ready() noexcept;
    void wake_first_operations() noexcept;
    void wake_all() noexcept;
    void notify_shutdown() noexcept;

    bool claim_run_id(std::size_t master, std::string_view run_id) override;
    void on_up(std::size_t master, std::string_view run_id) override;
    void on_down(std::size_t master, const net::failure& why) override;
    void on_risk(std::size_t master, risk what, std::string detail) override;
    void on_clock_off(std::size_t master, const core::clock_deviation& off) override;
    bool on_wake_up(std::size_t master, const net::wake_up& message) override;
    void on_nothing_outstanding() override;
    void on_stopped(std::size_t master) override;

    std::shared_ptr<manager_handle> handle_;
    config options_;
    redactor redactor_;
    std::shared_ptr<const runtime::environment> outside_;
    std::shared_ptr<const detail::master_names> names_;
    std::shared_ptr<notifier> notifier_;
    net::connection_options connection_options_;
    runtime::scheduler strand_;

    bool closing_ = false;
    bool aborted_ = false; // Operations that begin from now on are stopped.
    runtime::async_event* shutdown_event_ = nullptr;
    std::optional<clock::time_point> warm_since_; // When a quorum was ready.
    bool connecting_ = true;
    std::size_t stopped_connections_ = 0;
    std::string command_; // Buffer for a command that is sent to every master.
    active_set active_;
    std::size_t active_count_ = 0;
    std::size_t unconfirmed_releases_ = 0;
    lease_set leases_;
    std::size_t kept_leases_ = 0;
    std::vector<std::unique_ptr<round>> unused_rounds_;
    farewells farewells_{*this};
    runtime::unlinking_list<listed_round> held_back_;
    std::unique_ptr<guard>
        guard_; // Null in plain mode. Outlives the commands of the connections, whose replies it takes.
    std::vector<std::unique_ptr<net::connection>> connections_;
    std::vector<std::uint64_t> connection_numbers_; // By master.
    std::vector<bool> tried_;                       // By master: whether its first attempt has ended.
    wait_queues queues_;
    std::bitset<max_masters> queue_masters_; // Those that could be when the waiting acquires looked last.
    net::reserved_keys reserved_;
    net::run_ids run_ids_;
    std::vector<std::vector<error_code>> outages_; // By master: the reasons that were reported.
};

} // namespace redlock::manager
