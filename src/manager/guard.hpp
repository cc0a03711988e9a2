// SPDX-License-Identifier: BSL-1.0
// The masters of a guarded group, as one manager sees them: looks at each of them, and decides which may vote.
#pragma once

#include "core/fencing.hpp"
#include "core/members.hpp"
#include "core/standing.hpp"
#include "core/suspected_clocks.hpp"
#include "manager/arming.hpp"
#include "net/guard_commands.hpp"
#include "net/guard_keys.hpp"
#include "net/vote_sink.hpp"
#include "runtime/scheduler.hpp"

#include <redlock/examination.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

class lock_service;

/// Decides which masters vote in guarded mode.
///
/// Each connected master is looked at when it becomes ready, at an interval, and after each answer that it may not vote. The
/// group is that of the configuration, or else that of the first quorum of markers; its name stays the same for the life of
/// the manager. Its other values are those of the first quorum, until a quorum of armed masters shows others: an operator can arm
/// the group again with others if it has lost its data. A master votes only if the last look showed it armed in this group.
///
/// All functions are called on the strand.
class guard
{
  public:
    /// The longest time between two looks at a master.
    static constexpr std::chrono::milliseconds longest_interval{1000};

    /// `group`: the name of the group, or empty.
    guard(lock_service& service, std::string group);
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

    const net::guard_keys& keys() const noexcept { return keys_; }
    /// The group; empty until a quorum of masters has shown one.
    const std::optional<core::guarded_group>& identity() const noexcept { return identity_; }
    /// Describes what is wrong with a ttl; empty if it isn't too long, or the group isn't known yet.
    std::string ttl_complaint(std::chrono::milliseconds ttl) const;

    void on_up(std::size_t master);
    void on_down(std::size_t master) noexcept;
    /// Looks at a master at once, or again if a look is in flight.
    void look_again(std::size_t master);

    /// A master's clock went ahead, so that keys may have expired too early. The master is suspected, and doesn't vote for this
    /// manager; if it is accused, it is put into quarantine. See `core::suspected_clocks`.
    void on_clock_ahead(std::size_t master, const core::clock_deviation& seen);
    bool is_suspected(std::size_t master) const noexcept
    {
        return suspected_.is_suspected(master, voting_nonce(master));
    }

    /// Returns whether a look at a master has ended since it was connected.
    bool has_looked(std::size_t master) const noexcept { return members_[master]->has_looked; }
    bool is_armed(std::size_t master) const noexcept
    {
        return members_[master]->found && members_[master]->found->what == core::standing::armed;
    }

    bool is_in_quarantine(std::size_t master) const noexcept
    {
        return members_[master]->found && members_[master]->found->what == core::standing::quarantine;
    }

    /// Returns the standing of a master, by the last look; empty if nothing is known.
    const std::optional<core::judgement>& found(std::size_t master) const noexcept
    {
        return members_[master]->found;
    }
    /// Returns whether the last look at a master that has shown something, over any connection, has shown that it belongs to
    /// another group or to none any more.
    bool has_shown_other_group(std::size_t master) const;
    /// Returns when that look began.
    clock::time_point looked_at(std::size_t master) const noexcept { return members_[master]->looked_at; }
    const core::sight& seen(std::size_t master) const noexcept { return members_[master]->seen; }
    const std::optional<core::marker>& marker(std::size_t master) const noexcept
    {
        return members_[master]->marker;
    }
    /// Returns the record of the members that so many masters of the group show that every quorum has one of them.
    const std::optional<core::member_record>& record() const noexcept { return record_; }
    guarded_examination describe(std::size_t master) const;
    /// Returns the next step of each master.
    std::vector<guarded_advice> advise() const;
    /// A wait for the end of a quarantine has begun.
    void on_quarantine(std::size_t master, clock::time_point ends);

    /// Returns the counter that a new round proposes to all masters.
    std::uint64_t hint(clock::time_point now) const;
    /// A master has granted with this counter.
    void note_counter(std::uint64_t counter) noexcept { largest_seen_ = std::max(largest_seen_, counter); }
    /// Returns what the vote of a master depends on. If it doesn't vote, returns nothing, and `refused` is its vote.
    std::optional<net::voting_terms> terms(
        std::size_t master, std::chrono::milliseconds ttl, std::uint64_t hint, clock::time_point now,
        net::answer& refused) const;
    /// Returns the vote of a master that isn't armed, or not connected.
    net::answer unarmed_vote(std::size_t master) const noexcept;
    /// Returns the text of the marker of a master that has one.
    const std::string& marker_of(std::size_t master) const noexcept { return *members_[master]->seen.marker; }

  private:
    /// What is known of one master, and the look in flight.
    class member final : public net::vote_sink
    {
      public:
        member(guard& of, std::size_t index) noexcept : of_{of}, index_{index} {}

        bool is_looking() const noexcept { return pending_ > 0; }
        void begin_look();

        bool has_looked = false;
        bool looks_again = false;
        bool was_in_quarantine = false; // Which was reported.
        clock::time_point accused_until =
            clock::time_point::min();  // For its clock: no other is accused until then.
        clock::time_point looked_at{}; // When the last look that has ended began.
        // Of the last look that has shown something.
        core::sight seen;
        std::optional<core::marker> marker; // If `seen.marker` is one.
        std::optional<core::member_record> record;
        std::optional<core::judgement> found; // Empty: see `reason`.
        error_code reason;                    // Why the last look has shown nothing.
        short_text detail;
        short_text difference; // While no group is known: see `difference_of`.

      private:
        void on_vote(std::size_t, const net::answer& none, clock::time_point) noexcept override;
        bool on_reply(std::size_t, const resp::reply& reply) noexcept override;
        bool append_in_full(std::size_t, std::string&) const override { return false; }
        void recycle() noexcept override {}
        void on_taken();

        guard& of_;
        std::size_t index_;
        std::size_t pending_ = 0;
        clock::time_point began_{};
        net::look look_;
    };

    class look_deadline final : public runtime::deadline
    {
      public:
        explicit look_deadline(guard& of) noexcept : of_{of} {}

      private:
        void on_deadline() override { of_.look_at_all(); }

        guard& of_;
    };

    void look_at_all();
    void take(std::size_t master, const net::look& shown);
    std::optional<core::guarded_group> shown_group(const member& one, bool if_armed) const;
    std::optional<core::guarded_group> group_at_quorum(bool of_armed) const;
    void find_group();
    void find_record();
    void judge_all();
    void report_armed();
    std::string_view voting_nonce(std::size_t master) const noexcept;
    void judge_clocks();
    void accuse(std::size_t master);
    bool has_other_seat(std::size_t master) const;
    net::answer vote_of(const member& unarmed) const noexcept;
    short_text difference_of(const member& one) const;

    lock_service& service_;
    std::string wanted_; // The name of the configured group; empty for none.
    net::guard_keys keys_;
    std::optional<core::guarded_group> identity_;
    std::optional<core::member_record> record_;
    std::vector<std::unique_ptr<member>> members_; // By master.
    core::suspected_clocks suspected_;
    std::uint64_t largest_seen_ = 0;
    look_deadline again_{*this};
    arming arming_;
};

} // namespace redlock::manager
