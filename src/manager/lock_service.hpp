// SPDX-License-Identifier: BSL-1.0
// What is behind a lock_manager: its connections, what runs, and what is held. All of it on one strand.
#pragma once

#include <redlock/config.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/lease.hpp>
#include <redlock/options.hpp>
#include <redlock/report.hpp>

#include "core/leader.hpp"
#include "core/validity.hpp"
#include "env/environment.hpp"
#include "env/flow.hpp"
#include "manager/crowds.hpp"
#include "manager/deliver.hpp"
#include "manager/gate.hpp"
#include "manager/holding.hpp"
#include "manager/keeper.hpp"
#include "manager/notifier.hpp"
#include "manager/redactor.hpp"
#include "manager/round.hpp"
#include "net/connection.hpp"
#include "net/run_ids.hpp"

#include <boost/intrusive/set.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

/// What a shutdown does with an operation that runs.
enum class at_shutdown : std::uint8_t
{
    stop,  // It ends with `closed`.
    finish // It is waited for: it gives back what the shutdown would give back.
};

/// An operation that runs, so that it can be cancelled and waited for. It lives in its coroutine.
class running
    : public boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
  public:
    running(lock_service& service, std::uint64_t id, at_shutdown then = at_shutdown::stop);
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running();

    /// It has to end with this error, if it isn't at its end already.
    void stop(error_code why) noexcept;
    /// Why it has to end; empty while it may go on.
    error_code stopped() const noexcept { return stopped_; }

    env::wake wake;

    struct by_id
    {
        bool operator()(const running& left, std::uint64_t right) const noexcept { return left.id_ < right; }
        bool operator()(std::uint64_t left, const running& right) const noexcept { return left < right.id_; }
    };
    friend bool operator<(const running& left, const running& right) noexcept { return left.id_ < right.id_; }

  private:
    friend class lock_service;

    lock_service& service_;
    std::uint64_t id_;
    at_shutdown at_shutdown_;
    error_code stopped_;
};

/// Wakes an operation at a time.
class alarm_clock final : private env::deadline
{
  public:
    alarm_clock(env::scheduler& strand, env::wake& waiting, clock::time_point at) : waiting_{waiting}
    {
        strand.arm(*this, at);
    }

  private:
    void on_deadline() override { waiting_.notify(); }

    env::wake& waiting_;
};

class lock_service final : public std::enable_shared_from_this<lock_service>, private net::connection_owner
{
  public:
    /// `options` have been checked.
    lock_service(
        std::shared_ptr<gate> way, asio::any_io_executor executor, config options,
        std::shared_ptr<const env::environment> outside);
    lock_service(const lock_service&) = delete;
    lock_service& operator=(const lock_service&) = delete;
    ~lock_service();

    /// Once, before anything else. Throws `system_error` if the system gives no timer.
    void open();

    /// Starts an operation on the strand, for a call of the user's.
    template <class Call>
    void enter(env::flow (*operation)(lock_service&, Call), Call&& call)
    {
        strand_.enter([this, operation, call = std::move(call)]() mutable
                      { operation(*this, std::move(call)); });
    }

    // Everything below is called on the strand.

    env::scheduler& strand() noexcept { return strand_; }
    const config& options() const noexcept { return options_; }
    const std::shared_ptr<const report::master_names>& names() const noexcept { return names_; }
    std::chrono::milliseconds node_timeout(std::chrono::milliseconds ttl) const noexcept;
    core::timing timing(std::chrono::milliseconds ttl, std::chrono::milliseconds min_validity) const noexcept;
    /// Reads nothing that changes: any thread.
    core::lease_schedule schedule(
        std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> extend_every,
        std::optional<std::chrono::milliseconds> stop_margin) const noexcept;
    std::uint64_t random_number() const noexcept;

    /// Nothing new may start.
    bool closing() const noexcept { return closing_; }
    /// Nothing new starts from now on. Whatever may end the wait of a shutdown wakes it.
    void begin_closing(env::wake& closer) noexcept
    {
        closing_ = true;
        closer_ = &closer;
    }
    /// The shutdown has what it waited for, or has gone.
    void end_closing() noexcept { closer_ = nullptr; }
    void cancel(std::uint64_t operation) noexcept;
    void stop_all(error_code why) noexcept;
    /// All but those that a shutdown waits for.
    void stop_for_shutdown(error_code why) noexcept;
    /// The manager has ended: nothing leads to it any more.
    void leave() noexcept { way_->close(); }
    /// Why nothing more may start; empty if it may. The one that asks is counted already.
    error_code refusal() const noexcept
    {
        if (closing_)
        {
            return errc::closed;
        }
        return running_count_ > options_.max_operations ? error_code{errc::too_many_operations}
                                                        : error_code{};
    }
    /// One acquire more pauses between rounds, if it may.
    bool begin_pause() noexcept
    {
        const bool may = pausing_ < options_.max_waiting_acquires;
        pausing_ += may ? 1 : 0;
        return may;
    }
    void end_pause() noexcept { --pausing_; }
    /// Nothing runs but the one that asks.
    bool is_alone() const noexcept { return running_count_ == 1; }
    std::size_t running_count() const noexcept { return running_count_; }
    /// A release has ended without a quorum's confirmation: a shutdown tells so.
    void count_unconfirmed_release() noexcept { ++unconfirmed_releases_; }
    std::size_t unconfirmed_releases() const noexcept { return unconfirmed_releases_; }
    /// The end without order: what runs is aborted and connections are closed.
    void abort();
    void close_connections();
    bool connections_stopped() const noexcept { return stopped_connections_ == connections_.size(); }

    /// Whether a first round still waits for a quorum of masters, and until when at most. No longer than a quorum is
    /// possible at the first attempt: a master that has refused it isn't waited for.
    bool warming_up() const noexcept;
    /// Whether some master's very first connection is still being made: for `connect_timeout` at most.
    bool connecting() const noexcept { return connecting_; }
    clock::time_point warm_at_latest() const noexcept { return warm_at_latest_; }

    detail::holding_ptr make_holding(std::string_view resource);
    awaited_round send_sets(holding& about, std::chrono::milliseconds ttl, env::wake& listener);
    /// Asks the master that leads for it, and no other one yet, whether it is our turn.
    awaited_round
    ask_for_turn(holding& about, std::chrono::milliseconds ttl, bool in_line, env::wake& listener);
    /// It is: the SET goes to all others.
    void send_other_sets(round& begun);
    net::turn_request turn_request(std::chrono::milliseconds ttl, bool in_line) const noexcept;
    /// The master that leads for a resource, of those that are up; empty if none is.
    std::optional<std::size_t> leader_of(const holding& about) const noexcept;
    /// Whether others were seen to stand in line for it.
    bool is_crowded(std::string_view resource) const noexcept
    {
        return !crowds_.empty() && crowds_.have(core::stable_hash(resource));
    }
    /// Whether others want it as well, as the leading master knows.
    void note_crowd(std::string_view resource, bool others_want_it) noexcept;
    /// It doesn't say.
    void forget_crowd(std::string_view resource) noexcept { crowds_.forget(core::stable_hash(resource)); }
    /// `listener` may be null.
    awaited_round send_extensions(holding& about, std::chrono::milliseconds ttl, env::wake* listener);
    awaited_round send_releases(holding& about, env::wake& listener);
    /// A question to all masters.
    void ask(std::string_view command, net::voter& asker);
    /// How whatever a server said is shown.
    const redactor& redacted() const noexcept { return redactor_; }
    /// What is known of the masters, without asking.
    std::vector<master_examination> describe_masters() const;
    /// Releases what a lost round may have left. Nobody waits for it.
    void give_back(holding& about);
    void release_in_background(holding& about);

    /// The end of a lease: it isn't valid any more, and nothing extends it. False if it had ended before.
    bool begin_release(holding& held) noexcept;

    /// A lease of it was handed out: until its release begins this keeps it, whoever drops the lease, and wherever.
    void keep(holding& held) noexcept
    {
        intrusive_ptr_add_ref(&held);
        leases_.push_back(held);
    }
    /// The observer is notified of its loss if it expires.
    void watch_expiry(holding& held);
    /// From now on it is extended in the background.
    void start_keeping(holding& held, const core::lease_schedule& schedule, time_limit max_hold);
    /// It can't be shown to be valid any more, or not for long enough. For good; nothing is released before whoever
    /// holds it says so.
    void lose(holding& held, error_code why) noexcept;
    /// The same, at once: the masters said that the key isn't ours.
    void disown(holding& held) noexcept;
    /// Declares every kept lease lost. Returns until when at the latest one of them was valid.
    clock::time_point lose_kept_leases(error_code why) noexcept;
    bool has_kept_leases() const noexcept { return kept_leases_ > 0; }
    /// Takes a lease for release, or null: for the shutdown.
    holding* first_lease() noexcept { return leases_.empty() ? nullptr : &leases_.front(); }
    /// How many answers to releases the masters that are up owe.
    std::size_t owed() const noexcept;

    void on_extension_vote(round& of, std::size_t master) noexcept;
    void recycle(round& unused) noexcept;

    bool observed() const noexcept { return notifier_ != nullptr; }
    void notify(event what);
    /// Notifies the observer that a round has ended, the `number`th of its operation; after a release, of that as well.
    void notify_round(const round& of, error_code result, std::uint32_t number, clock::duration validity);

    /// Ends an operation: the handler is called on its executor, behind this turn, never inside of the user's call.
    /// Not inlined for the same reason as `detail::erase`.
    template <class Signature, class... Arguments>
    [[gnu::noinline]] void complete(detail::completion<Signature>& done, Arguments... arguments)
    {
        strand_.after_turn([done = std::move(done), ... arguments = std::move(arguments)]() mutable
                           { deliver(std::move(done), std::move(arguments)...); });
    }

  private:
    friend class running;

    using running_set = boost::intrusive::set<running, boost::intrusive::constant_time_size<false>>;
    using lease_set = boost::intrusive::list<
        holding, boost::intrusive::base_hook<lease_hook>, boost::intrusive::constant_time_size<false>>;

    awaited_round
    begin_round(redlock::operation what, holding& about, std::chrono::milliseconds ttl, env::wake* listener);
    void tell_loss(holding& held) noexcept;
    void report_failed_extensions(holding& held);
    void confirm_extension(round& of) noexcept;
    void rejoin(round& of, std::size_t master);
    void tell_first_ones() noexcept;
    void wake_all() noexcept;
    void tell_closer() noexcept;

    bool claim_run_id(std::size_t master, std::string_view run_id) override;
    void on_up(std::size_t master, std::string_view run_id) override;
    void on_down(std::size_t master, const net::failure& why) override;
    void on_risk(std::size_t master, risk what, std::string detail) override;
    void on_nothing_owed() override;
    void on_stopped(std::size_t master) override;

    std::shared_ptr<gate> way_;
    config options_;
    redactor redactor_;
    std::shared_ptr<const env::environment> outside_;
    std::shared_ptr<const report::master_names> names_;
    std::shared_ptr<notifier> notifier_;
    net::connection_options connection_options_;
    env::scheduler strand_;

    bool closing_ = false;
    env::wake* closer_ = nullptr;
    bool warm_ = false;
    clock::time_point warm_at_latest_{};
    bool connecting_ = true;
    std::size_t stopped_connections_ = 0;
    std::string command_; // Where a command is put together that goes to every master.
    running_set running_;
    std::size_t running_count_ = 0;
    std::size_t pausing_ = 0;
    std::size_t unconfirmed_releases_ = 0;
    lease_set leases_;
    std::size_t kept_leases_ = 0;
    std::vector<std::unique_ptr<round>> unused_rounds_;
    std::vector<std::unique_ptr<net::connection>> connections_;
    std::vector<std::uint64_t> master_hashes_;
    crowds crowds_;
    net::run_ids run_ids_;
    std::vector<error_code> last_down_; // Of each master: so that an outage is told once.
};

} // namespace redlock::manager
