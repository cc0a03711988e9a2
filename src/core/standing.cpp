// SPDX-License-Identifier: BSL-1.0
// Whether a master may vote in guarded mode.
#include "core/standing.hpp"

namespace redlock::core
{

namespace
{

judgement of_unmarked(bool is_on_record) noexcept
{
    return is_on_record ? judgement{standing::forgetful, incarnation_end::emptied}
                        : judgement{standing::unprovisioned};
}

judgement of_older_incarnation(const marker& found) noexcept
{
    const bool keeps_reason = found.state == marker_state::quarantine && found.why != incarnation_end::clock;
    return {standing::forgetful, keeps_reason ? found.why : incarnation_end::stale};
}

} // namespace

guarded_group group_in(const marker& its)
{
    return {its.group, its.masters, its.max_ttl, its.policy};
}

bool is_of_group(const marker& found, const guarded_group& ours) noexcept
{
    return found.group == ours.name && found.masters == ours.masters && found.max_ttl == ours.max_ttl &&
           found.policy == ours.policy;
}

judgement standing_of(const sight& seen, const guarded_group& ours, bool is_on_record)
{
    if (!seen.is_master)
    {
        return {standing::replica};
    }
    if (!seen.marker)
    {
        return of_unmarked(is_on_record);
    }
    const std::optional<marker> found = parse_marker(*seen.marker);
    if (!found)
    {
        return {standing::unreadable};
    }
    if (found->state == marker_state::retired)
    {
        return {standing::retired};
    }
    if (!is_of_group(*found, ours))
    {
        return {standing::other_group};
    }
    if (found->replication_id != seen.replication_id)
    {
        return of_older_incarnation(*found);
    }
    const judgement present = found->state == marker_state::armed
                                  ? judgement{standing::armed}
                                  : judgement{standing::quarantine, found->why};
    if (has_kept_counters(present) && !seen.has_floor)
    {
        return of_unmarked(is_on_record);
    }
    const bool is_stranger = present.what == standing::quarantine && !is_on_record;
    return is_stranger ? judgement{standing::not_a_member} : present;
}

} // namespace redlock::core
