// SPDX-License-Identifier: BSL-1.0
// Ports, command counts and CPU time of the masters.
#pragma once

#include "support/server.hpp"

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

std::vector<int> ports_of(std::span<const test::server> masters);

/// Returns how many commands of this name (in lower case) all these masters have run, those of scripts included.
double commands_run(std::span<test::server> masters, std::string_view name);

/// Returns the user and system time of all threads of all these masters. The masters must be running.
std::chrono::nanoseconds cpu_of(std::span<const test::server> masters);

} // namespace redlock::bench
