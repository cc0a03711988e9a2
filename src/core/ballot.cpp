// SPDX-License-Identifier: BSL-1.0
// The votes of one round, and their result.
#include "core/ballot.hpp"

#include <cassert>

namespace redlock
{

std::string_view to_string(vote value) noexcept
{
    switch (value)
    {
    case vote::pending:
        return "pending";
    case vote::granted:
        return "granted";
    case vote::denied:
        return "denied";
    case vote::timed_out:
        return "timed out";
    case vote::failed:
        return "failed";
    case vote::unsent:
        return "unsent";
    }
    return "unknown";
}

} // namespace redlock

namespace redlock::core
{

ballot::ballot(std::size_t masters) noexcept : masters_{static_cast<std::uint8_t>(masters)}
{
    assert(masters >= 1 && masters <= max_masters);
    counts_[static_cast<std::size_t>(vote::pending)] = masters_;
}

bool ballot::cast(std::size_t master, vote value) noexcept
{
    assert(master < masters_);
    assert(value != vote::pending);
    if (votes_[master] != vote::pending)
    {
        return false;
    }
    votes_[master] = value;
    --counts_[static_cast<std::size_t>(vote::pending)];
    ++counts_[static_cast<std::size_t>(value)];
    return true;
}

void ballot::cast_pending(vote value) noexcept
{
    for (std::size_t master = 0; master < masters_; ++master)
    {
        cast(master, value);
    }
}

verdict ballot::outcome() const noexcept
{
    if (count(vote::granted) >= quorum())
    {
        return verdict::won;
    }
    const bool reachable = count(vote::granted) + count(vote::pending) >= quorum();
    return reachable ? verdict::undecided : verdict::lost;
}

refusal ballot::why_lost(std::size_t failed_grants) const noexcept
{
    const std::size_t answered = count(vote::granted) - failed_grants + count(vote::denied);
    if (answered >= quorum())
    {
        // Without a refusal, a quorum granted, but has no fencing token.
        return count(vote::denied) != 0 ? refusal::held : refusal::no_quorum;
    }
    return answered + count(vote::pending) >= quorum() ? refusal::unknown : refusal::no_quorum;
}

bool ballot::disowned() const noexcept
{
    return masters_ - count(vote::denied) < quorum();
}

} // namespace redlock::core
