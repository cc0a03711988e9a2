// SPDX-License-Identifier: BSL-1.0
// The words for the risks and quarantines that observers are notified of.
#include <redlock/observer.hpp>

namespace redlock
{

std::string_view to_string(risk value) noexcept
{
    switch (value)
    {
    case risk::eviction:
        return "eviction";
    case risk::clock:
        return "clock";
    case risk::no_identity:
        return "no identity";
    case risk::cannot_kill_stale_connections:
        return "cannot kill stale connections";
    case risk::outdated:
        return "outdated";
    case risk::release_refused:
        return "release refused";
    case risk::limited_queue:
        return "limited queue";
    case risk::arming_refused:
        return "arming refused";
    }
    return "unknown";
}

std::string_view to_string(incarnation_end value) noexcept
{
    switch (value)
    {
    case incarnation_end::created:
        return "created";
    case incarnation_end::stale:
        return "stale";
    case incarnation_end::emptied:
        return "emptied";
    case incarnation_end::clock:
        return "clock";
    }
    return "unknown";
}

} // namespace redlock
