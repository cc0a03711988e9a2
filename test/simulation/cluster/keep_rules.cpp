// SPDX-License-Identifier: BSL-1.0
// Rules for kept leases.
#include "keep_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace redlock::test
{

namespace
{

// A clock with a drift shows whole nanoseconds.
constexpr std::chrono::microseconds rounding{1};
// One that fails by silence, and its repetition.
constexpr std::int64_t enough = 2;

} // namespace

void keep_rules::begin(
    std::string_view owner_id, clock::time_point valid_until, kept_times times, clock::time_point now)
{
    kept_.insert_or_assign(std::string{owner_id}, kept_lease{times, valid_until, now});
}

std::optional<violation>
keep_rules::notified(const event& what, clock::time_point now, clock::time_point last_pause)
{
    if (const auto* decided = std::get_if<round_decided>(&what);
        decided != nullptr && decided->report.operation == operation::extend)
    {
        sent_[decided->owner_id].push_back(now - decided->report.elapsed);
    }
    else if (const auto* extended = std::get_if<lease_extended>(&what))
    {
        const auto found = kept_.find(extended->owner_id);
        if (found != kept_.end() && extended->valid_until > found->second.valid_until)
        {
            found->second.valid_until = extended->valid_until;
            found->second.confirmed = now;
        }
    }
    else if (const auto* lost = std::get_if<lease_lost>(&what))
    {
        return check_loss(*lost, now, last_pause);
    }
    return std::nullopt;
}

std::optional<violation>
keep_rules::check_loss(const lease_lost& lost, clock::time_point now, clock::time_point last_pause) const
{
    const auto found = kept_.find(lost.owner_id);
    if (found == kept_.end() || lost.reason != errc::lease_lost)
    {
        return std::nullopt;
    }
    const kept_lease& one = found->second;
    const clock::time_point ends = one.valid_until - one.times.margin;
    const clock::time_point sent = one.valid_until - one.times.validity;
    // Before its time, a loss is declared only if "not ours" leaves no quorum.
    if (now + rounding < ends || last_pause >= sent)
    {
        return std::nullopt;
    }
    // A confirmation that came late may leave no time for both.
    const std::int64_t fit = std::min<std::int64_t>(enough, (ends - one.confirmed) / one.times.node_timeout);
    const auto is_attempt = [&](clock::time_point each)
    { return each > sent + rounding && each + one.times.node_timeout <= now + rounding; };
    const auto all = sent_.find(lost.owner_id);
    const std::int64_t attempts =
        all != sent_.end() ? std::count_if(all->second.begin(), all->second.end(), is_attempt) : 0;
    if (attempts >= fit)
    {
        return std::nullopt;
    }
    return violation{
        "kept",
        fmt::format(
            "{} is lost {} us after it was confirmed, with {} extensions that had a node timeout of "
            "{} ms to be answered",
            lost.owner_id, std::chrono::duration_cast<std::chrono::microseconds>(now - one.confirmed).count(),
            attempts, one.times.node_timeout.count())};
}

} // namespace redlock::test
