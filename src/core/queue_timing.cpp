// SPDX-License-Identifier: BSL-1.0
// The times of a client that waits in the queue of a resource.
#include "core/queue_timing.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core
{

namespace
{

using std::chrono::milliseconds;

/// Returns a duration that is uniformly distributed between two bounds, the upper one included.
clock::duration between(clock::duration least, clock::duration most, std::uint64_t random) noexcept
{
    const auto width = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + clock::duration{static_cast<clock::rep>(random % width)};
}

} // namespace

milliseconds queue_grace(milliseconds node_timeout) noexcept
{
    constexpr milliseconds least{50};
    return std::min(std::max(least, 2 * node_timeout), queue_liveness);
}

clock::duration next_heartbeat(const queue_position& position, std::uint64_t random) noexcept
{
    constexpr std::size_t rank_that_doubles = 64;
    constexpr std::size_t max_rank = std::size_t{1}
                                     << 20; // Keeps the product in range, whatever a master reports.
    const auto rank = static_cast<clock::rep>(std::min(position.rank, max_rank));
    const clock::duration middle =
        clock::duration{queue_heartbeat} + clock::duration{queue_heartbeat} * rank / rank_that_doubles;
    const clock::duration drawn = between(middle - middle / 5, middle + middle / 5, random);
    const bool awaits_expiry = position.rank == 0 && position.key_expires_in;
    return awaits_expiry ? std::min<clock::duration>(drawn, *position.key_expires_in + milliseconds{1})
                         : drawn;
}

clock::duration next_poll(const queue_position& position, clock::duration since_rank_changed) noexcept
{
    const std::size_t clients = std::min<std::size_t>(position.rank, max_queue_pause.count()) + 1;
    const clock::duration by_rank = milliseconds{1} * static_cast<clock::rep>(clients);
    const clock::duration most = position.rank == 0 ? max_first_poll : max_queue_pause;
    return std::min<clock::duration>(std::max(by_rank, since_rank_changed / 4), most);
}

clock::duration
pause_after_loss(std::uint32_t losses, clock::duration round_took, std::uint64_t random) noexcept
{
    constexpr clock::duration least = std::chrono::microseconds{500};
    clock::duration middle = std::clamp<clock::duration>(round_took, least, max_queue_pause);
    for (std::uint32_t loss = 1; loss < losses && middle < max_queue_pause; ++loss)
    {
        middle *= 2;
    }
    return std::min<clock::duration>(between(middle / 2, middle + middle / 2, random), max_queue_pause);
}

bool overruled_watch::on_lost(std::size_t queue_master, bool overruled, clock::time_point now) noexcept
{
    if (std::exchange(queue_master_, queue_master) != queue_master)
    {
        reset();
    }
    if (!overruled)
    {
        reset();
        return false;
    }
    if (seen_ == 0)
    {
        first_ = now;
    }
    seen_ = std::min(seen_ + 1, losses);
    return seen_ == losses && now - first_ >= at_least;
}

} // namespace redlock::core
