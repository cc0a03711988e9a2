// SPDX-License-Identifier: BSL-1.0
// The oracle of a simulated run. It sees the wire, the masters' stores and the true time; of the library it sees only
// what a user sees: leases, and the results of operations.
#pragma once

#include "simulation/sim_master.hpp"
#include "wire_rules.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <concepts>
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

/// A broken promise.
struct violation
{
    std::string check; // Its name.
    std::string words;
};

/// Checks the promises of the library. The names of the checks:
///   exclusion       two leases of one resource are valid at once
///   body            another client acquires a resource whose body is still running
///   validity        a lease is valid, and no quorum of the masters keeps its key
///   loss in time    a kept lease is about to expire, and its holder was not notified
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
///   in time         a round takes longer than its masters have to answer
///   back-off        rounds follow each other at once, or always after the same delay
///   confirmed       a release succeeds, and a quorum still has the key
///   availability    only a minority of the masters fails, and a round isn't won
///   kept            one extension fails, and the lease is lost
///   nonsense        a connection is kept after an invalid reply
///   replica         a connection is kept after its master reported to be a replica
///   inspection      an inspection or examination contradicts itself
///   events          an observer is notified of something that didn't happen
///   refusal         an invalid request isn't refused, or for the wrong reason
///   words           a text has an unprintable byte or a password in it
///   shutdown        a manager was shut down, and a key of its still exists
///   settles         a release is repeated at a master that refuses releases permanently, or other releases fail
/// and those of wire_rules.
class oracle
{
  public:
    explicit oracle(cluster_run& cluster);

    const std::optional<violation>& found() const noexcept { return found_; }
    /// Records the first violation.
    void check(bool holds, std::string_view name, std::string words)
    {
        if (!holds && !found_)
        {
            found_ = violation{std::string{name}, std::move(words)};
        }
    }
    /// The same for frequent checks: the text is only made for a violation.
    template <std::invocable<> Words>
    void check(bool holds, std::string_view name, const Words& words)
    {
        if (!holds && !found_)
        {
            check(false, name, words());
        }
    }
    /// The number of double holds while the assumptions were broken.
    std::size_t doubles() const noexcept { return doubles_; }
    std::size_t leases() const noexcept { return lease_intervals_.size(); }

    // ---- What a user sees.
    /// Records a new lease. The loss of a kept lease is to be reported `told_before` its end. A kept lease counts as held
    /// until it is released or its validity ends, any other one as long as `valid()` returns true.
    std::size_t
    won(process& by, const lease& has, std::optional<std::chrono::milliseconds> told_before, bool kept,
        std::optional<clock::time_point> hold_ends = {});
    void gave_back(std::size_t known_as);
    void told_of_loss(std::size_t known_as) { lease_intervals_[known_as].told = true; }
    /// The library reported the loss: the lease mustn't look valid again.
    void lost_for_good(std::size_t known_as) { lease_intervals_[known_as].final_loss = true; }
    void completed(const process& by, const call& what, error_code error);
    /// Checks that the missing votes can't change the result of an acquire's last round.
    void check_verdict(const process& by, const report& told, error_code error);
    /// Checks the report of one round. `paused`: the process was paused during the round.
    void check_round(const process& by, const report& told, error_code error, bool paused);
    /// Checks the delays between the rounds of an acquire.
    void check_back_off(const process& by, const report& told, clock::duration took);
    /// Checks that an acquire ended within its wait. `paused`: the process was paused during the acquire.
    void check_wait(
        const process& by, std::chrono::milliseconds wait, std::chrono::milliseconds node_timeout,
        clock::duration took, bool paused);
    /// Checks a release that has ended. No other operation was begun on the lease.
    void check_release(
        const process& by, const lease& released, const std::string& owner_id, const std::string& resource,
        error_code error);
    /// The manager is being shut down or dropped.
    void closing(const process& by);
    /// The process was destroyed together with its leases.
    void forget(const process& gone);

    /// The number of releases that a master got.
    std::size_t releases_at(std::size_t master) const { return releases_[master]; }
    /// Returns true if any master got a SET of this owner id.
    bool was_sent(std::string_view owner_id) const { return owners_.contains(owner_id); }

    // ---- What users don't see.
    void on_command(
        std::size_t master, const client_state& from, const std::string& what, const command& words,
        const std::string& reply);
    /// The process made a step: leases may have been extended.
    void after_step(process& by);
    /// No event is left at the current time.
    void before_time_passes();
    /// Every outstanding release has had its time.
    void check_released();

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
    };

    /// Why a connection has to be closed.
    struct useless
    {
        std::string_view check;
        std::string_view what;
    };

    bool believes(const lease_interval_record& one) const;
    void check_alone(std::size_t known_as);
    void check_kept_by_quorum(const lease_interval_record& one);
    void watch_end(std::size_t known_as);
    void expect_left(std::size_t master, const client_state& from, useless why);
    void check_left();

    cluster_run& cluster_;
    wire_rules wire_;
    std::optional<violation> found_;
    std::vector<lease_interval_record> lease_intervals_;
    std::vector<std::size_t> current_;               // Indices of held leases.
    std::map<std::string, int, std::less<>> owners_; // The process of each owner id.
    std::map<int, bool> closed_;
    std::map<std::string, std::size_t, std::less<>> grants_; // By owner id.
    std::vector<std::pair<std::weak_ptr<virtual_link>, useless>>
        useless_; // Connections that have to be closed.
    std::size_t doubles_ = 0;
    std::vector<std::size_t> releases_; // By master.
};

} // namespace redlock::test
