// SPDX-License-Identifier: BSL-1.0
// How a guarded group continues after all of its masters were restarted. Includes the standard library only, because
// the pure layers use it.
#pragma once

#include <cstdint>

namespace redlock
{

/// How a guarded group continues after all of its masters were restarted. It belongs to the group, and is the same for
/// all of its clients.
enum class arming_policy : std::uint8_t
{
    clocks, ///< Clients arm the masters; fencing tokens continue above the masters' clocks.
    by_hand ///< An operator arms the masters.
};

} // namespace redlock
