// SPDX-License-Identifier: BSL-1.0
// The votes of one round, and their result. A plain value.
#pragma once

#include <redlock/vote.hpp>

#include <array>
#include <cstddef>

namespace redlock::core
{

/// The result of a round so far.
enum class verdict : std::uint8_t
{
    undecided, // A quorum of grants has not been reached, but still can be.
    won,       // A quorum granted.
    lost       // A quorum of grants can no longer be reached.
};

/// The reason why a round was lost.
enum class refusal : std::uint8_t
{
    unknown,  // The pending votes decide between the other two.
    held,     // A quorum answered, but too few granted: another client holds or acquires the resource.
    no_quorum // Fewer than a quorum answer granted or denied, whatever the pending votes are.
};

/// The votes of one round over N masters. The quorum is a majority of all N masters, including unreachable ones.
class ballot
{
  public:
    /// `masters` is 1 to `max_masters`.
    explicit ballot(std::size_t masters) noexcept;

    /// Records a master's vote, unless it has voted already. Returns whether the vote was recorded.
    bool cast(std::size_t master, vote value) noexcept;
    /// Records `value` for every master whose vote is pending.
    void cast_pending(vote value) noexcept;

    vote of(std::size_t master) const noexcept { return votes_[master]; }
    std::size_t masters() const noexcept { return masters_; }
    std::size_t quorum() const noexcept { return quorum_of(masters_); }
    std::size_t count(vote value) const noexcept { return counts_[static_cast<std::size_t>(value)]; }

    verdict outcome() const noexcept;
    /// Returns the reason why the round was lost. Meaningful only for a lost round. Of the grants, `failed_grants` count as
    /// failed.
    refusal why_lost(std::size_t failed_grants = 0) const noexcept;
    /// Returns whether the masters that did not vote `denied` ("not ours", in an extension) are fewer than a quorum.
    bool disowned() const noexcept;

  private:
    std::array<vote, max_masters> votes_{};
    std::array<std::uint8_t, 6> counts_{};
    std::uint8_t masters_;
};

} // namespace redlock::core
