// SPDX-License-Identifier: BSL-1.0
// The times at which a kept lease is extended and its loss is declared.
#include "core/lease_schedule.hpp"

#include "core/milliseconds_text.hpp"
#include "core/validity.hpp"

#include <algorithm>

namespace redlock::core
{

namespace
{

using std::chrono::milliseconds;

constexpr milliseconds max_beat{25};
constexpr int beats = 200; // The minimum number of beats per extend_every.

} // namespace

lease_schedule make_schedule(
    milliseconds ttl, std::optional<milliseconds> extend_every, std::optional<milliseconds> stop_margin,
    milliseconds node_timeout, double drift_factor) noexcept
{
    const auto drifted = std::chrono::ceil<milliseconds>(drift(ttl, drift_factor));
    return {
        ttl, extend_every.value_or(ttl / 3), stop_margin.value_or(std::max(ttl / 10, 2 * drifted)),
        node_timeout, drift_factor};
}

std::string schedule_complaint(const lease_schedule& given)
{
    if (given.extend_every < milliseconds{1} || given.extend_every > given.ttl)
    {
        return "an extend_every of " + in_ms(given.extend_every) + " can't be used: with a ttl of " +
               in_ms(given.ttl) + " it must be at least 1 ms, and below the ttl";
    }
    if (given.stop_margin < milliseconds{0} || given.stop_margin > given.ttl)
    {
        return "a stop_margin of " + in_ms(given.stop_margin) + " can't be used: with a ttl of " +
               in_ms(given.ttl) + " it must be at least 0 ms, and below the ttl";
    }
    const auto drifted = std::chrono::ceil<milliseconds>(drift(given.ttl, given.drift_factor));
    const milliseconds late = given.extend_every + (given.extend_every + milliseconds{9}) / 10;
    const milliseconds needed = late + 2 * given.node_timeout + given.stop_margin + drifted;
    if (needed < given.ttl)
    {
        return {};
    }
    return "a ttl of " + in_ms(given.ttl) + " can't be kept: 1.1 extend_every (" + in_ms(late) +
           ") + 2 node_timeout (" + in_ms(2 * given.node_timeout) + ") + stop_margin (" +
           in_ms(given.stop_margin) + ") + drift (" + in_ms(drifted) + ", by drift_factor) is " +
           in_ms(needed) + ", and must be below the ttl";
}

clock::time_point
extension_at(const lease_schedule& given, clock::time_point sent, std::uint64_t random) noexcept
{
    const clock::duration every = given.extend_every;
    const clock::duration least = every - every / 10;
    const auto width = static_cast<std::uint64_t>((every / 5).count()) + 1;
    const clock::time_point drawn = sent + least + clock::duration{static_cast<clock::rep>(random % width)};
    const clock::duration beat = std::min<clock::duration>(max_beat, every / beats);
    return std::max(sent, drawn - drawn.time_since_epoch() % beat);
}

clock::time_point loss_at(const lease_schedule& given, clock::time_point valid_until) noexcept
{
    return valid_until - given.stop_margin;
}

} // namespace redlock::core
