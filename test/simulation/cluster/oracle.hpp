// SPDX-License-Identifier: BSL-1.0
// The oracle of a simulated run. It sees the wire, the masters' stores and the true time; of the library it sees only
// what a user sees: leases, and the results of operations.
#pragma once

#include "jump_rules.hpp"
#include "queue_rules.hpp"
#include "sending_rules.hpp"
#include "simulation/sim_master.hpp"
#include "support/report_check.hpp"
#include "token_rules.hpp"
#include "wait_rules.hpp"
#include "wire_rules.hpp"

#include <redlock/redlock.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

class process;
class cluster_run;
struct call;

/// Returns a duration for a message.
inline clock::rep in_us(clock::duration length)
{
    return std::chrono::duration_cast<std::chrono::microseconds>(length).count();
}

/// Checks the promises of the library. The names of the checks:
///   exclusion       two leases of one resource are valid at once
///   body            another client acquires a resource whose body is still running
///   validity        a lease is valid, and no quorum of the masters keeps its key
///   loss in time    a kept lease is about to expire, or one whose loss is awaited has expired, and its holder was not notified
///   early loss      the wait for the loss of a lease that isn't kept ends while it is valid and nothing else has ended it
///   liveness        the faults have ended, and a resource can't be acquired
///   released        the key of a released lease still exists
///   outstanding     a SET ran, and no release followed it
///   nothing left    an operation, timer or stream is left after the end
///   completed once  an operation completed twice
///   errors          an operation ended with an error that nothing explains
///   steps           virtual time doesn't advance
///   same trace      two runs of the same seed differ
///   final           a lost or released lease looks valid
///   shortened       the validity of a held lease becomes shorter
///   max hold        a client keeps a resource for longer than max_hold
///   late start      a body begins under an expired lease
///   verdict         the result of a round contradicts its votes
///   min validity    a lease is granted with less than was asked for, or refused with more
///   in time         a round takes longer than its masters have to answer
///   back-off        rounds follow each other at once, or always after the same delay
///   confirmed       a release succeeds, and a quorum still has the key
///   availability    only a minority of the masters fails, and a round isn't won
///   kept            one extension fails, and the lease is lost
///   nonsense        a connection is kept after an invalid reply
///   replica         a connection is kept after its master reported to be a replica
///   inspection      an inspection or examination contradicts itself
///   executor        a handler, a body or an observer is called on the wrong executor
///   events          an observer is notified of something that didn't happen, or not of something that did
///   refusal         an invalid request isn't refused, or for the wrong reason
///   words           a text has an unprintable byte or a password in it
///   shutdown        a manager was shut down, and a key of its still exists
///   reports         a report contradicts what the masters answered
///   outstanding count
///                   at rest, a manager counts more or fewer keys as outstanding than the masters have
///   settles         a release is repeated at a master that refuses releases permanently, or other releases fail
/// and those of wire_rules, queue_rules, wait_rules, token_rules and jump_rules.
class oracle
{
  public:
    explicit oracle(cluster_run& cluster);

    const std::optional<violation>& found() const noexcept { return found_; }
    /// Records the first violation. Its text is only made then.
    template <class... Values>
    void check(
        bool holds, std::string_view name, fmt::format_string<const Values&...> words,
        const Values&... values)
    {
        if (!holds && !found_)
        {
            found_ = violation{std::string{name}, fmt::format(words, values...)};
        }
    }
    /// The number of double holds while the assumptions were broken.
    std::size_t doubles() const noexcept { return doubles_; }
    std::size_t leases() const noexcept { return lease_intervals_.size(); }
    /// The number of lock commands that the masters executed, and of events that observers received.
    std::size_t commands() const noexcept { return commands_; }
    std::size_t events() const noexcept { return events_; }
    /// The number of owner ids that masters were asked for: one for each round, and for each question to a queue master.
    std::size_t rounds() const noexcept { return owners_.size(); }
    void count_event() noexcept { ++events_; }

    // ---- What a user sees.
    /// Records a new lease. The loss of a kept lease is to be reported `told_before` its end. A kept lease counts as held
    /// until it is released or its validity ends, any other one as long as `valid()` returns true.
    std::size_t
    won(process& by, const lease& has, std::optional<std::chrono::milliseconds> told_before, bool kept,
        std::optional<clock::time_point> hold_ends = {});
    /// When an acquire began, for `issued`.
    struct beginning
    {
        token_rules::moment order;
        clock::time_point at;
    };
    beginning moment();
    /// Checks the token of a lease that a caller got from an acquire that began at `began`. `told`: null if there is no report.
    void issued(
        const process& by, const lease& has, const report* told, const beginning& began, bool kept = false);
    /// Clocks of masters are too wrong for what depends on them.
    void distrust_clocks() noexcept
    {
        if (tokens_)
        {
            tokens_->distrust_clocks();
        }
    }
    jump_rules& jumps() noexcept { return jumps_; }
    token_rules* tokens() noexcept { return tokens_ ? &*tokens_ : nullptr; }
    void gave_back(std::size_t known_as);
    /// From now on, the holder of a lease that isn't kept waits for its loss, which is the end of its validity.
    void awaits_expiry(std::size_t known_as)
    {
        lease_interval_record& one = lease_intervals_[known_as];
        one.told_before = std::chrono::milliseconds{0};
        one.told = false;
    }
    /// Checks how the wait has ended. `gave_back`: its holder has released it. `closed`: its manager was shut down or destroyed.
    void check_expiry(std::size_t known_as, error_code error, error_code why, bool gave_back, bool closed);
    void told_of_loss(std::size_t known_as) { lease_intervals_[known_as].told = true; }
    /// The library reported the loss: the lease mustn't look valid again.
    void lost_for_good(std::size_t known_as) { lease_intervals_[known_as].final_loss = true; }
    void completed(const process& by, const call& what, error_code error);
    /// Checks that the missing votes can't change the result of an acquire's last round.
    void check_verdict(const process& by, const report& told, error_code error);
    /// Checks the report of one round. `paused`: the process was paused during the round.
    void check_round(const process& by, const report& told, error_code error, bool paused);
    /// Checks the validity of the round that decided an acquire, against the least that was asked for.
    void check_validity(
        const process& by, const report& told, error_code error, std::chrono::milliseconds ttl,
        std::chrono::milliseconds least);
    /// Checks the delays between the rounds of an acquire.
    void check_back_off(const process& by, const report& told, clock::duration took);
    /// Checks that an acquire ended within its wait. `paused`: the process was paused during the acquire.
    void check_wait(
        const process& by, std::chrono::milliseconds wait, std::chrono::milliseconds node_timeout,
        clock::duration took, bool paused);
    /// Checks that an acquire which found no lock has used its wait. `hopeless`: masters refuse permanently.
    void check_patience(
        const process& by, error_code error, bool hopeless, std::chrono::milliseconds wait,
        clock::duration took);
    /// Checks a release that has ended. No other operation was begun on the lease.
    void check_release(
        const process& by, const lease& released, const std::string& owner_id, const std::string& resource,
        error_code error);
    /// The manager is being shut down or dropped.
    void closing(const process& by);
    /// The manager reported that every lease was released.
    void check_shut_down(const process& by);
    /// The process was destroyed together with its leases.
    void forget(const process& gone);

    /// Checks a comparison with the wire.
    void check_reported(const std::optional<std::string>& contradiction)
    {
        check(!contradiction, "reports", "{}", contradiction.value_or(""));
    }
    /// Compares the reason for which a process has left a master with what that owed it.
    void check_silence(const process& by, const master_down& one);
    /// Compares a round that the process is notified of with what it has sent.
    void check_sent(const process& by, const round_decided& round);
    report_check& reports() noexcept { return reports_; }
    queue_rules& queues() noexcept { return queues_; }
    wait_rules& waits() noexcept { return waits_; }

    /// The number of releases that a master got.
    std::size_t releases_at(std::size_t master) const { return releases_[master]; }
    /// Returns true if any master got a SET of this owner id.
    bool was_sent(std::string_view owner_id) const { return owners_.contains(owner_id); }

    // ---- What users don't see.
    void on_command(
        std::size_t master, const client_state& from, const std::string& what, const command& words,
        const std::string& reply);
    /// The same for a server that is in no list.
    void on_stranger(
        const client_state& from, const std::string& what, const command& words, const std::string& reply);
    /// The master has sent something that is no reply: the connection has to be closed.
    void on_nonsense(std::size_t master, const client_state& to)
    {
        reports_.distort(to.origin, master);
        expect_left(master, to, {"nonsense", "that it can't understand"});
    }
    /// The process made a step: leases may have been extended.
    void after_step(process& by);
    /// No event is left at the current time.
    void before_time_passes();
    /// Returns whether a master has refused the process the queue on a connection that it still has: the process waits
    /// elsewhere until it connects again.
    bool is_refused_queue(const process& by) const;
    /// The largest number of clients in a queue with one that gets no messages.
    std::size_t most_waiting() const noexcept { return most_waiting_; }
    /// Every outstanding release has had its time.
    void check_released();
    /// Nothing is in flight: each manager counts the keys as outstanding that the masters have.
    void check_outstanding();

  private:
    struct lease_interval_record
    {
        process* by;
        const lease* has;
        std::string resource;
        std::string owner_id;
        clock::time_point until; // By the clock of its process. Never decreases.
        std::optional<std::chrono::milliseconds> told_before;
        bool kept;
        std::optional<clock::time_point> hold_ends{};
        bool told = false;
        bool final_loss = false;
        bool over = false;
        bool manager_closed = false;
    };

    /// Why a connection has to be closed.
    struct useless
    {
        std::string_view check;
        std::string_view what;
    };

    void look_at_plain(
        std::size_t master, const client_state& from, const std::string& what, const command& words,
        const std::string& reply);
    void look_at_queues(
        std::size_t master, const client_state& from, const std::string& what, const command& words,
        const std::string& reply);
    void check_rule(const std::optional<violation>& broken)
    {
        if (broken)
        {
            check(false, broken->check, "{}", broken->words);
        }
    }
    bool believes(const lease_interval_record& one) const;
    /// Guarded mode promises nothing to a plain client.
    bool is_promised(const lease_interval_record& one) const;
    void check_alone(std::size_t known_as);
    /// A quorum of the masters doesn't have the key.
    void check_confirmed(const process& by, const std::string& owner_id, const std::string& resource);
    void check_kept_by_quorum(const lease_interval_record& one);
    void watch_end(std::size_t known_as);
    void expect_left(std::size_t master, const client_state& from, useless why);
    void check_left();
    bool must_release(const std::string& owner_id) const;

    cluster_run& cluster_;
    wire_rules wire_;
    jump_rules jumps_;
    queue_rules queues_;
    wait_rules waits_;
    std::optional<token_rules> tokens_; // In guarded seeds.
    report_check reports_;
    sending_rules sendings_;
    std::optional<violation> found_;
    std::vector<lease_interval_record> lease_intervals_;
    std::vector<std::size_t> current_;                       // Indices of held leases.
    std::map<std::string, int, std::less<>> owners_;         // The process of each owner id.
    std::map<int, std::vector<std::size_t>> closed_;         // By process, with what it held.
    std::map<std::string, std::size_t, std::less<>> grants_; // By owner id.
    std::vector<std::pair<std::weak_ptr<virtual_link>, useless>>
        useless_; // Connections that have to be closed.
    std::vector<std::weak_ptr<virtual_link>>
        without_queue_; // Connections on which it was refused permanently.
    std::size_t most_waiting_ = 0;
    std::size_t doubles_ = 0;
    std::size_t commands_ = 0;
    std::size_t events_ = 0;
    std::vector<std::size_t> releases_; // By master.
};

} // namespace redlock::test
