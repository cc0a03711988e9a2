// SPDX-License-Identifier: BSL-1.0
// Guarded mode: puts masters that may have forgotten keys into quarantine, and arms them afterwards.
#pragma once

#include "core/marker.hpp"
#include "net/arming_commands.hpp"
#include "net/vote_sink.hpp"
#include "runtime/scheduler.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

class guard;
class lock_service;

/// What this manager does to get the masters of its group armed. Every manager does it, in the background, and none depends on
/// another: a master compares the marker with the one that the client has seen, so that whoever comes second changes nothing.
///
/// `guard` calls `reconsider` after each look at a master, which takes the next step for each of them:
///
/// - A master that may have forgotten keys is put into quarantine.
/// - From the answer that showed a quarantine, this manager waits until every key of before has expired, and up to a second
///   more, so that not all managers come at once. Then it looks again.
/// - If that look shows the same quarantine, and enough masters can be asked, it asks them for their largest counters. If enough
///   of those have answered that have kept all their counters, it arms the master with the largest as its floor. Otherwise it
///   tries again after the next look, or, under the policy `clocks`, arms it by the clock if so many masters were restarted that
///   too few are left.
class arming
{
  public:
    arming(lock_service& service, guard& of);
    arming(const arming&) = delete;
    arming& operator=(const arming&) = delete;

    void reconsider();
    /// Puts a master into quarantine, if its name is on the record of the group. Otherwise, that is left to managers which know
    /// it by that name.
    void begin(std::size_t master, core::incarnation_end why);
    /// The wait goes on: if the next connection shows the same text, it is the same incarnation.
    void on_down(std::size_t master) noexcept;
    /// Returns whether this manager waits for the end of the quarantine with this marker, so that the master was a member in it.
    bool waits_for(std::size_t master, std::string_view marker) const noexcept;
    /// Returns when a quarantine of a master was seen first; empty if none is waited for.
    std::optional<clock::time_point> since(std::size_t master) const noexcept;
    /// Returns when a quarantine of a master is expected to end; empty if none is waited for.
    std::optional<clock::time_point> ends(std::size_t master) const noexcept;

  private:
    /// What the floor of a master is taken from when it is armed.
    enum class floor_source : std::uint8_t
    {
        none, // It can't be armed.
        counters,
        clock
    };

    /// The quarantine of one master, and the commands in flight for it.
    class quarantine final : public net::vote_sink
    {
      public:
        explicit quarantine(arming& of, std::size_t index) noexcept : of_{of}, index_{index} {}

        bool is_busy() const noexcept { return pending_ > 0; }
        void begin(core::marker begun, const std::string& seen);
        void wait_for(const std::string& text);
        void forget() noexcept;
        bool can_be_armed() const;
        void count();
        void arm(std::uint64_t floor);

        std::string text;          // The marker that is waited for; empty if none is.
        clock::time_point since{}; // When it was seen first.
        clock::time_point ends{};  // When the wait is over.
        bool by_clock = false;     // Too few masters have kept their counters.
        bool was_refused = false;  // Which has been reported.

      private:
        enum class step : std::uint8_t
        {
            beginning,
            counting,
            arming
        };

        void on_vote(std::size_t master, const net::answer& none, clock::time_point) noexcept override;
        bool on_reply(std::size_t master, const resp::reply& reply) noexcept override;
        bool append_in_full(std::size_t, std::string&) const override { return false; }
        void recycle() noexcept override {}
        void send(std::size_t master, const std::string& command);
        /// Returns from what the floor is taken if so many masters show their counters: those that have kept them, and others.
        floor_source floor_with(std::size_t kept, std::size_t others) const;
        /// Returns whether a master is asked for its largest counter.
        bool is_asked(std::size_t master) const;
        void on_counted();
        void on_refused(const net::arming_reply& said);

        arming& of_;
        std::size_t index_;
        step step_ = step::beginning;
        std::size_t pending_ = 0;
        bool was_out_of_date_ =
            false; // The last command, because the master shows another marker or incarnation.
        // While counting.
        std::string counted_for_;      // The marker of the quarantine.
        std::uint32_t asked_kept_ = 0; // One bit for each master that has kept its counters, as it was asked.
        std::size_t of_kept_ = 0;      // How many of them have answered with their largest counter,
        std::size_t of_others_ = 0;    // and how many others.
        std::uint64_t largest_of_kept_ = 0;
        std::uint64_t largest_ = 0; // Of all of them.
        std::string count_error_;   // Why a master hasn't; empty for none.
    };

    class wait_deadline final : public runtime::deadline
    {
      public:
        explicit wait_deadline(arming& of) noexcept : of_{of} {}

      private:
        void on_deadline() override { of_.on_waited(); }

        arming& of_;
    };

    void reconsider(std::size_t master);
    bool may_use_clock(const quarantine& of) const;
    bool sees_other_group() const;
    void on_waited();
    void watch();
    void report_refusal(std::size_t master, std::string why);

    lock_service& service_;
    guard& guard_;
    std::vector<std::unique_ptr<quarantine>> masters_;
    wait_deadline next_{*this};
};

} // namespace redlock::manager
