// SPDX-License-Identifier: BSL-1.0
// The masters whose clocks a client has seen ahead, and what the readings of the others say about them. No I/O, no clock.
#pragma once

#include "core/clock_watch.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core
{

/// What a client knows of a master.
struct clock_witness
{
    const clock_watch* clock;
    std::string_view nonce; // Of its marker, if it is armed or in quarantine. Empty otherwise.
    bool is_connected;
};

/// The masters of a group whose clocks went ahead, so that keys may have expired too early.
///
/// Each jump that a client sees makes it suspect the master until that shows another quarantine than then, or all locks of then
/// have ended. This doesn't depend on what the other masters show. They decide what is done on top of it:
///
/// - If a quorum of the others agree with our clock, the master is accused, for the clients that have noticed nothing.
/// - If so many went ahead at once, and by as much, that no quorum of others can agree, our own clock has stood still. What this
///   explains is dropped. A single master has no witness for that.
class suspected_clocks
{
  public:
    /// All masters are read once in this time.
    static constexpr std::chrono::seconds until_all_are_read{2};

    explicit suspected_clocks(std::size_t masters) : masters_(masters) {}

    /// The clock of a master went ahead, as a reading has shown that was received `now`.
    void on_ahead(std::size_t master, const clock_deviation& off, clock::time_point now);
    /// A look at a master, which began at `began`, has shown the marker of its group with this nonce.
    void on_marker(std::size_t master, std::string_view nonce, clock::time_point began);
    /// Returns whether a master is suspected. `nonce`: as in `clock_witness`.
    bool is_suspected(std::size_t master, std::string_view nonce) const noexcept;
    bool has_any() const noexcept;
    /// Drops the jumps that are over, after `longest`, and those that a stop of our clock explains. Returns the masters that are
    /// accused, one bit for each. A jump that may be several seconds old is no reason for that: others may have judged it.
    std::uint32_t
    judge(std::span<const clock_witness> witnesses, clock::time_point now, clock::duration longest);

  private:
    struct stop;
    /// A clock that was seen ahead.
    struct jump
    {
        clock::time_point since;   // It went ahead after this reading was sent,
        clock::time_point last;    // and before this one was received.
        clock::duration by;        // At least,
        clock::duration unnoticed; // and by so much more, at most.
        clock::duration shown;     // As it was reported.
        std::string nonce{};       // Of the first marker after `last`; empty until then.
        // One bit for each other master.
        std::uint32_t heard = 0;  // It was read since.
        std::uint32_t agreed = 0; // Since before, it hasn't gone ahead by half as much,
        std::uint32_t denied = 0; // or can't have done so, however the clocks drift.

        bool is_over(std::string_view present) const noexcept;
    };
    /// A stop of our own clock: between these moments, and as long.
    struct stop
    {
        clock::time_point since = clock::time_point::min();
        clock::time_point last = clock::time_point::max();
        clock::duration shortest{0};
        clock::duration longest{0};
        std::uint32_t shown_by = 0; // One bit for each master.

        bool is_at(const jump& seen) const noexcept { return since <= seen.last && seen.since <= last; }
        bool explains(const jump& seen) const noexcept;
    };
    struct known
    {
        std::vector<jump> jumps;
        std::vector<stop> stops; // Of our clock, which its next readings may still show.
    };

    bool is_accused(std::size_t master, std::string_view nonce) const;
    void hear(std::size_t master, jump& seen, std::span<const clock_witness> witnesses) const;
    bool is_stop(const stop& found, std::span<const clock_witness> witnesses, clock::time_point now) const;
    stop likely_stop() const;
    stop stop_at(clock::time_point at, clock::duration longest) const noexcept;
    void take(const stop& ours);

    std::vector<known> masters_;
};

} // namespace redlock::core
