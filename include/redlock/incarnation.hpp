// SPDX-License-Identifier: BSL-1.0
// Guarded mode: the stretches of a master's life with one unbroken set of data.
#pragma once

#include <redlock/detail/export.hpp>

#include <cstdint>
#include <string_view>

namespace redlock
{

/// Why an incarnation of a master ended, so that a quarantine has to begin the next one.
enum class incarnation_end : std::uint8_t
{
    created, ///< There was none: the group was provisioned.
    stale,   ///< The server was restarted or failed over, and has its data, or an older copy.
    emptied, ///< The data is gone.
    clock    ///< A client saw the server's clock jump ahead.
};

/// Returns the name of the enumerator, such as "stale". Thread-safe.
REDLOCK_API std::string_view to_string(incarnation_end value) noexcept;

} // namespace redlock
