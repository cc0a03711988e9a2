// SPDX-License-Identifier: BSL-1.0
// Who judges what happens in a universe. It sees the wire, the masters' stores and the true time; of the library it
// takes only what a user sees: leases, and what operations ended with.
#pragma once

#include "simulation/scripted_master.hpp"
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
class universe;
struct call;

/// What was promised and isn't so.
struct violation
{
    std::string check; // Its name.
    std::string words;
};

/// The checks have names:
///   exclusion       two leases of one resource are valid at once
///   body            somebody gets in beside a body that is still running
///   validity        a lease is valid, and no quorum of the masters keeps its key
///   loss in time    a kept lease is as good as over, and nobody was told
///   liveness        nothing fails any more, and a resource can't be had
///   released        what was given back is still there
///   owed            a SET ran, and no release behind it
///   nothing left    something waits, or is held, after the end
///   completed once  an operation completed twice
///   errors          an operation ended with an error that it had no reason for
///   steps           time stands still
///   same trace      the same seed went another way
///   final           a lease looks valid that is lost or was released
///   shortened       the end of a lease comes nearer while it is held
///   max hold        somebody keeps a resource for longer than it may
///   late start      a body begins under a lease that isn't valid any more
///   verdict         a round ends with what its votes don't say
///   in time         a round takes longer than its masters have to answer
///   back-off        rounds follow each other at once, or always after the same time
///   confirmed       a release succeeds, and a quorum still has the key
///   availability    nothing fails but a minority of the masters, and a round isn't won
///   kept            one extension fails, and the lease is lost
///   nonsense        a connection is kept whose master has answered what makes no sense
///   replica         a connection is kept whose master has answered that it is a replica
///   inspection      what is said of who holds what, or of how the masters are, can't be
///   events          an observer is told what wasn't so
///   refusal         what can't be done isn't refused, or for the wrong reason
///   words           a text isn't printable, or has a password in it
///   shutdown        a manager was shut down, and what it held is still there
///   settles         a master that refuses releases permanently is sent one again, or fails those of others
/// and those of wire_rules.
class oracle
{
  public:
    explicit oracle(universe& all);

    const std::optional<violation>& found() const noexcept { return found_; }
    /// Only the first violation counts.
    void check(bool holds, std::string_view name, std::string words)
    {
        if (!holds && !found_)
        {
            found_ = violation{std::string{name}, std::move(words)};
        }
    }
    /// The same where it is looked often: the words are made when they are needed.
    template <std::invocable<> Words>
    void check(bool holds, std::string_view name, const Words& words)
    {
        if (!holds && !found_)
        {
            check(false, name, words());
        }
    }
    /// How often two held the same at once, where that isn't promised to be impossible.
    std::size_t doubles() const noexcept { return doubles_; }
    std::size_t leases() const noexcept { return tenures_.size(); }

    // ---- What a user sees.
    /// Somebody has a lease from now on. `told_before` of one that is kept: so long before its end it is told of. What
    /// is kept is held until it is given back, or until its validity ends; else the lease itself says so.
    std::size_t
    won(process& by, const lease& has, std::optional<std::chrono::milliseconds> told_before, bool kept,
        std::optional<clock::time_point> hold_ends = {});
    void gave_back(std::size_t known_as);
    void told_of_loss(std::size_t known_as) { tenures_[known_as].told = true; }
    /// The same, and the library said so itself: it mustn't look valid again.
    void lost_for_good(std::size_t known_as) { tenures_[known_as].final_loss = true; }
    void completed(const process& by, const call& what, error_code error);
    /// What the last round of an acquire ended with: its reason is one that the votes that are missing can't change.
    void check_verdict(const process& by, const report& told, error_code error);
    /// What one round was told of, in a process that has never been paused since it began, or has.
    void check_round(const process& by, const report& told, error_code error, bool paused);
    /// What an acquire was told of that took so long.
    void check_back_off(const process& by, const report& told, clock::duration took);
    /// The same acquire, cancelled or not: a cancellation only makes it shorter. The process was paused meanwhile, or not.
    void check_wait(
        const process& by, std::chrono::milliseconds wait, std::chrono::milliseconds node_timeout,
        clock::duration took, bool paused);
    /// A release has ended; nothing else has been done with the lease.
    void check_release(
        const process& by, const lease& released, const std::string& owner_id, const std::string& resource,
        error_code error);
    /// Its manager is being shut down, or dropped.
    void closing(const process& by);
    /// It has gone, and its leases with it.
    void forget(const process& gone);

    /// How many releases a master got.
    std::size_t releases_at(std::size_t master) const { return releases_[master]; }
    /// Whether some master got a SET of it.
    bool was_sent(std::string_view owner_id) const { return owners_.contains(owner_id); }

    // ---- What nobody else sees.
    void on_command(
        std::size_t master, const client_state& from, const std::string& what, const command& words,
        const std::string& reply);
    /// It made a step: leases may have become longer.
    void after_step(process& by);
    /// Nothing is left to do at this time.
    void before_time_passes();
    /// All that was to be paid back has had its time.
    void check_released();

  private:
    struct tenure_record
    {
        process* by;
        const lease* has;
        std::string resource;
        std::string owner_id;
        clock::time_point until; // By its process's clock; never less than it was.
        std::optional<std::chrono::milliseconds> told_before;
        bool kept;
        std::optional<clock::time_point> hold_ends{};
        bool told = false;
        bool final_loss = false;
        bool over = false;
    };

    /// Why a connection has to be left.
    struct useless
    {
        std::string_view check;
        std::string_view what;
    };

    bool believes(const tenure_record& one) const;
    void check_alone(std::size_t known_as);
    void check_kept_by_quorum(const tenure_record& one);
    void watch_end(std::size_t known_as);
    void expect_left(std::size_t master, const client_state& from, useless why);
    void check_left();

    universe& all_;
    wire_rules wire_;
    std::optional<violation> found_;
    std::vector<tenure_record> tenures_;
    std::vector<std::size_t> current_;               // Those that aren't over.
    std::map<std::string, int, std::less<>> owners_; // Of each owner id that was sent: which process.
    std::map<int, bool> closed_;
    std::map<std::string, std::size_t, std::less<>> grants_; // Of each owner id.
    std::vector<std::pair<std::weak_ptr<virtual_link>, useless>>
        useless_; // Connections that have to be left.
    std::size_t doubles_ = 0;
    std::vector<std::size_t> releases_; // That each master got.
};

} // namespace redlock::test
