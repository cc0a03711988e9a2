// SPDX-License-Identifier: BSL-1.0
// The votes of one round, and what they decide. A value: votes in, verdict out.
#pragma once

#include <redlock/vote.hpp>

#include <array>
#include <cstddef>

namespace redlock::core
{

/// What the votes of a round say so far.
enum class verdict : std::uint8_t
{
    undecided, // A quorum of grants is still possible and not yet there.
    won,       // A quorum granted.
    lost       // A quorum of grants can't be reached any more.
};

/// Why a round was lost.
enum class refusal : std::uint8_t
{
    unknown,  // Votes are pending that make the difference between the other two.
    held,     // A quorum answered; it is somebody else's.
    no_quorum // Fewer than a quorum answered granted or held, whatever the pending votes will be.
};

/// The votes of one round over N masters. The quorum is of N, whatever is reachable.
class ballot
{
  public:
    /// `masters` is 1 to `max_masters`.
    explicit ballot(std::size_t masters) noexcept;

    /// Books a master's vote. Its first one counts; true if this was it.
    bool cast(std::size_t master, vote value) noexcept;
    /// Books `value` for every master whose vote is pending.
    void cast_pending(vote value) noexcept;

    vote of(std::size_t master) const noexcept { return votes_[master]; }
    std::size_t masters() const noexcept { return masters_; }
    std::size_t quorum() const noexcept { return quorum_of(masters_); }
    std::size_t count(vote value) const noexcept { return counts_[static_cast<std::size_t>(value)]; }

    verdict outcome() const noexcept;
    /// Of a lost round.
    refusal why_lost() const noexcept;
    /// So many masters said "not yours" that the others are no quorum.
    bool disowned() const noexcept;

  private:
    std::array<vote, max_masters> votes_{};
    std::array<std::uint8_t, 6> counts_{};
    std::uint8_t masters_;
};

} // namespace redlock::core
