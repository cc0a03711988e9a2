// SPDX-License-Identifier: BSL-1.0
// Rules for the guarded mode: which masters grant, and which tokens are issued.
#pragma once

#include "core/marker.hpp"
#include "simulation/sim_master.hpp"
#include "wire_rules.hpp"

#include <redlock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

/// The masters of a run as a guarded group, by what they have stored.
class guarded_masters
{
  public:
    /// `names`: those of the clients' configuration.
    guarded_masters(
        std::vector<sim_master*> masters, std::vector<std::string> names, std::chrono::milliseconds max_ttl,
        std::size_t database);

    /// The longest `max_ttl` that a marker may have.
    std::chrono::milliseconds longest_ttl() const noexcept { return longest_ttl_; }
    void may_have(std::chrono::milliseconds max_ttl) { longest_ttl_ = std::max(longest_ttl_, max_ttl); }
    /// That of a master's marker.
    std::chrono::milliseconds max_ttl(std::size_t master) const;
    /// Provisions the group, as an operator does ahead of all clients.
    void provision();
    /// Puts a master into quarantine, or arms it with a floor above all counters and clocks, as an operator does if the
    /// clients can't.
    void put_into_quarantine(std::size_t master);
    void arm(std::size_t master);
    void remove_marker(std::size_t master);

    /// Notes that a master was armed, by a client or by an operator.
    void note_armed(std::size_t master);
    /// Chooses the group in which an operator arms masters: the latest one that was armed, whose name he has kept.
    void choose_group();
    /// Chooses the group that all masters with a marker show. Returns false if there is none, or if it is the chosen one.
    bool choose_shown_group();
    const std::string& name() const noexcept { return group_; }
    /// Returns whether a master is armed in that group.
    bool is_member(std::size_t master) const;
    /// Returns whether all markers are of one group.
    bool is_one() const;
    /// Returns whether no master has a marker.
    bool is_forgotten() const;

    /// Returns whether a master may vote.
    bool is_armed(std::size_t master) const;
    std::size_t count_armed() const;
    /// Returns whether a master isn't armed, and its marker shows that it has kept its data.
    bool is_stale(std::size_t master) const;
    /// Returns whether it shows clients the record of the members, which they believe from a master with a marker.
    bool has_record(std::size_t master) const;
    /// It is armed, or was so until its clock jumped.
    bool has_kept_counters(std::size_t master) const;
    /// Returns the nonce of a master's marker; empty if it has none.
    std::string nonce(std::size_t master) const;
    /// Returns the counter of a slot; 0 if the master has no floor.
    std::uint64_t counter(std::size_t master, const std::string& slot) const;
    std::uint64_t floor(std::size_t master) const { return counter(master, "floor"); }
    std::uint64_t largest_counter() const;
    /// Returns whether a master has a marker in another database than that of the group.
    bool has_other_marker(std::size_t master) const;
    bool may_evict(std::size_t master) const { return at(master).maxmemory_policy != "noeviction"; }

    sim_master& at(std::size_t master) const { return *masters_[master]; }
    std::size_t size() const noexcept { return masters_.size(); }

  private:
    std::optional<core::marker> its_marker(std::size_t master) const;
    void put_marker(std::size_t master, std::string_view state);
    std::string record() const;

    std::vector<sim_master*> masters_;
    std::vector<std::string> names_;
    std::string group_;
    std::set<std::string> names_of_groups_; // That were armed since the first one.
    std::optional<core::marker> latest_;    // Of the latest of them.
    std::chrono::milliseconds max_ttl_;     // Of this group.
    std::chrono::milliseconds longest_ttl_;
    std::size_t database_;
    std::uint64_t nonces_ = 0;
};

/// Checks what masters execute in guarded mode, and the tokens of leases:
///   quarantine     a master grants that isn't armed; or it grants, or is armed, earlier than max_ttl after it may have lost
///                  keys
///   floor          a master is armed below a token that was issued before its wait has ended
///   stranger armed a server that no list of the group has grants or is armed
///   eviction       a master is armed although it may evict keys
///   one marker     a master is armed, and another one of its databases has a marker
///   token          a lease of guarded mode has no token, one of plain mode has one, or its report has another
///   token exact    a token is issued that a quorum of the masters didn't have exactly, while the key was that of the lease:
///                  granted with it, or raised to it from a smaller one
///   token unique   a token of a resource is issued twice
///   token order    an acquire that began after a token was issued gets a smaller one
///   token rises    a valid lease is issued with a smaller token than an earlier one
class token_rules
{
  public:
    /// The order of events, where time stands still.
    using moment = std::uint64_t;

    token_rules(std::shared_ptr<guarded_masters> group, std::size_t quorum)
        : group_{std::move(group)}, quorum_{quorum}
    {
    }

    /// Returns a broken rule; empty if no rule is broken. `words` and `reply` as on the wire.
    std::optional<violation> look(
        std::size_t master, const std::string& what, const command& words, const std::string& reply,
        clock::time_point at, bool by_operator);

    /// The same for a server that is no master of the group.
    static std::optional<violation>
    look_at_stranger(const std::string& what, const command& words, const std::string& reply);

    moment now() noexcept { return ++last_; }
    /// A caller got a lease with this token from an acquire that began then. `is_valid`: the lease is valid, and no
    /// assumption is broken. Returns a broken rule.
    std::optional<violation> issued(
        const std::string& key, const std::string& owner_id, std::optional<std::uint64_t> token, moment began,
        bool is_valid, clock::time_point at);

    /// Clocks of masters are wrong by so much that tokens can't be promised once too few masters are armed.
    void distrust_clocks() noexcept { trusts_clocks_ = false; }
    /// A master was put back to the past, which nobody can notice. Its counters are too small.
    void distrust(std::size_t master)
    {
        put_back_.insert(master);
        promised_ = false;
    }
    /// An operator has armed masters by their clocks.
    void armed_by_hand() noexcept { promised_ = promised_ && trusts_clocks_; }
    /// When a master was armed last; the earliest time if it never was.
    clock::time_point armed_at(std::size_t master) const
    {
        const auto found = armed_at_.find(master);
        return found == armed_at_.end() ? clock::time_point::min() : found->second;
    }
    std::size_t raises() const noexcept { return raises_; }
    std::size_t arms() const noexcept { return arms_; }
    std::size_t tokens() const noexcept { return tokens_; }

  private:
    struct quarantine
    {
        std::string marker{};
        clock::time_point since{};
    };
    struct issue
    {
        moment when;
        std::uint64_t largest; // So far.
    };
    struct resource_tokens
    {
        std::set<std::uint64_t> all{};
        std::vector<issue> issues{};
    };

    std::optional<violation> check_vote(std::size_t master, clock::time_point at) const;
    bool clocks_order_floors(clock::time_point at) const;
    std::optional<violation> check_arming(std::size_t master, clock::time_point at, bool by_operator);
    std::optional<clock::duration> since_loss(std::size_t master, clock::time_point at) const;

    std::shared_ptr<guarded_masters> group_;
    std::size_t quorum_;
    moment last_ = 0;
    bool trusts_clocks_ = true;
    bool promised_ = true; // That tokens are unique and rise.
    std::vector<clock::time_point> armed_by_clock_;
    std::map<std::size_t, clock::time_point> armed_at_; // By master.
    std::set<std::size_t> put_back_;                    // Masters.
    std::map<std::string, std::map<std::size_t, std::set<std::uint64_t>>, std::less<>>
        exact_;                                                       // By owner id and master.
    std::map<std::size_t, quarantine> quarantines_;                   // By master.
    std::map<std::string, resource_tokens, std::less<>> resources_;   // By key.
    std::vector<std::pair<clock::time_point, std::uint64_t>> issued_; // The largest token of all so far.
    std::size_t raises_ = 0;
    std::size_t arms_ = 0;
    std::size_t tokens_ = 0;
};

} // namespace redlock::test
