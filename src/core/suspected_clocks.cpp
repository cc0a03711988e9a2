// SPDX-License-Identifier: BSL-1.0
// The masters whose clocks a client has seen ahead.
#include "core/suspected_clocks.hpp"

#include <redlock/vote.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace redlock::core
{

namespace
{

constexpr std::size_t often_enough = 3;
constexpr std::size_t most_jumps = 8;           // Of one master.
constexpr std::chrono::minutes oldest_stop{10}; // No connection says nothing for as long.

constexpr std::uint32_t bit_of(std::size_t master) noexcept
{
    return std::uint32_t{1} << master;
}

std::size_t size(std::uint32_t masters) noexcept
{
    return static_cast<std::size_t>(std::popcount(masters));
}

} // namespace

/// Returns whether a stop of our clock could be all of it.
bool suspected_clocks::stop::explains(const jump& seen) const noexcept
{
    return seen.denied == 0 && is_at(seen) && seen.by <= longest && shortest <= seen.by + seen.unnoticed;
}

void suspected_clocks::on_ahead(std::size_t master, const clock_deviation& off, clock::time_point now)
{
    known& one = masters_[master];
    jump seen{off.since, now, off.by - off.drift, off.between + 2 * off.drift, off.by};
    const auto is_cause = [&](const stop& each) { return each.explains(seen); };
    const auto cause = std::find_if(one.stops.begin(), one.stops.end(), is_cause);
    if (cause != one.stops.end())
    {
        one.stops.erase(cause); // The readings of the others have shown it.
        return;
    }
    if (one.jumps.size() == most_jumps)
    {
        // Counts with the one before, so that no stop is all of it.
        seen.since = one.jumps.back().since;
        seen.denied = bit_of(master);
        one.jumps.pop_back();
    }
    one.jumps.push_back(std::move(seen));
}

void suspected_clocks::on_marker(std::size_t master, std::string_view nonce, clock::time_point began)
{
    for (jump& each : masters_[master].jumps)
    {
        if (each.nonce.empty() && began >= each.last)
        {
            each.nonce = nonce;
        }
    }
}

/// Returns whether another quarantine has begun since.
bool suspected_clocks::jump::is_over(std::string_view present) const noexcept
{
    return !present.empty() && !nonce.empty() && nonce != present;
}

bool suspected_clocks::is_suspected(std::size_t master, std::string_view nonce) const noexcept
{
    const std::vector<jump>& jumps = masters_[master].jumps;
    return std::any_of(jumps.begin(), jumps.end(), [&](const jump& each) { return !each.is_over(nonce); });
}

bool suspected_clocks::has_any() const noexcept
{
    return std::any_of(
        masters_.begin(), masters_.end(), [](const known& each) { return !each.jumps.empty(); });
}

std::uint32_t suspected_clocks::judge(
    std::span<const clock_witness> witnesses, clock::time_point now, clock::duration longest)
{
    std::uint32_t accused = 0;
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        std::vector<jump>& jumps = masters_[master].jumps;
        std::erase_if(jumps, [&](const jump& each) { return now >= each.last + longest; });
        for (jump& each : jumps)
        {
            hear(master, each, witnesses);
        }
        accused |= is_accused(master, witnesses[master].nonce) ? bit_of(master) : 0U;
    }
    for (stop ours = likely_stop(); is_stop(ours, witnesses, now); ours = likely_stop())
    {
        take(ours);
    }
    return accused;
}

/// Returns whether a quorum of others are sure of a jump, or have agreed again and again.
bool suspected_clocks::is_accused(std::size_t master, std::string_view nonce) const
{
    const std::size_t quorum = quorum_of(masters_.size());
    std::size_t agreed = 0;
    for (const jump& each : masters_[master].jumps)
    {
        if (!each.nonce.empty() && !each.is_over(nonce) && size(each.agreed) >= quorum)
        {
            agreed += size(each.denied) >= quorum ? often_enough : 1U;
        }
    }
    return agreed >= often_enough;
}

/// Takes what the first reading of each other master says since a clock was seen ahead: it would show a stop of our clock as well.
void suspected_clocks::hear(std::size_t master, jump& seen, std::span<const clock_witness> witnesses) const
{
    for (std::size_t other = 0; other < masters_.size(); ++other)
    {
        const clock_watch& from = *witnesses[other].clock;
        const bool is_first = other != master && (seen.heard & bit_of(other)) == 0;
        if (!is_first || !from.last() || from.last()->sent < seen.last)
        {
            continue;
        }
        seen.heard |= bit_of(other);
        const std::optional<clock_deviation> shown = from.deviation_since(seen.since);
        if (shown)
        {
            const clock::duration most = shown->by + shown->between;
            seen.agreed |= 2 * most < seen.shown ? bit_of(other) : 0U;
            seen.denied |= most + shown->drift < seen.by ? bit_of(other) : 0U;
        }
    }
}

/// Returns whether our clock stood still: so many have shown it that no quorum can disagree, and all have been asked again. One
/// that has shown it may have jumped, and have the stop still to show. A single master has no witness.
bool suspected_clocks::is_stop(
    const stop& found, std::span<const clock_witness> witnesses, clock::time_point now) const
{
    const std::size_t showing = size(found.shown_by);
    const auto is_asked = [&](const clock_witness& each)
    { return !each.is_connected || (each.clock->last() && each.clock->last()->sent >= found.last); };
    return showing > 1 && masters_.size() - showing < quorum_of(masters_.size()) &&
           (now >= found.last + until_all_are_read ||
            std::all_of(witnesses.begin(), witnesses.end(), is_asked));
}

/// Returns the stop of our clock that explains the jumps of the most masters: each shows its length, less what could go unnoticed.
suspected_clocks::stop suspected_clocks::likely_stop() const
{
    stop likely;
    for (const known& one : masters_)
    {
        for (const known& other : masters_)
        {
            for (const jump& latest : one.jumps)
            {
                for (const jump& shortest : other.jumps)
                {
                    if (latest.denied != 0 || shortest.denied != 0)
                    {
                        continue;
                    }
                    const stop found = stop_at(latest.last, shortest.by + shortest.unnoticed);
                    likely = size(found.shown_by) > size(likely.shown_by) ? found : likely;
                }
            }
        }
    }
    return likely;
}

/// Returns a stop at a moment and of a length, as precisely as those tell it who may have shown it.
suspected_clocks::stop suspected_clocks::stop_at(clock::time_point at, clock::duration longest) const noexcept
{
    stop one{.longest = longest};
    for (std::size_t master = 0; master < masters_.size(); ++master)
    {
        for (const jump& each : masters_[master].jumps)
        {
            const bool shows = each.denied == 0 && each.since <= at && at <= each.last &&
                               each.by <= longest && longest <= each.by + each.unnoticed;
            if (shows)
            {
                one.shortest = std::max(one.shortest, each.by);
                one.since = std::max(one.since, each.since);
                one.last = std::min(one.last, each.last);
                one.shown_by |= bit_of(master);
            }
        }
    }
    return one;
}

/// Drops what a stop of our clock explains, of what is suspected and of what the next readings will show.
void suspected_clocks::take(const stop& ours)
{
    for (known& each : masters_)
    {
        const auto explained = std::find_if(
            each.jumps.begin(), each.jumps.end(), [&](const jump& one) { return ours.explains(one); });
        if (explained != each.jumps.end())
        {
            each.jumps.erase(explained); // One of them is left, if it shows two.
            continue;
        }
        std::erase_if(each.stops, [&](const stop& old) { return old.last + oldest_stop < ours.last; });
        each.stops.push_back(ours);
    }
}

} // namespace redlock::core
