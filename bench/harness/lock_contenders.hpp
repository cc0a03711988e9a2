// SPDX-License-Identifier: BSL-1.0
// Clients of the library that compete for one resource.
#pragma once

#include "harness/contender.hpp"

#include <redlock/redlock.hpp>

#include <string>

namespace redlock::bench
{

/// Clients that wait with `async_acquire`.
contender_factory library_contenders(config options, std::string resource);

/// Clients that wait as in the textbook: one round, and after a failure a random delay. The README of node-redlock has a
/// retryDelay of 200 ms and a retryJitter of 200 ms, which is added or subtracted. The delay is uniform in 0 to 400 ms.
contender_factory textbook_contenders(config options, std::string resource);

} // namespace redlock::bench
