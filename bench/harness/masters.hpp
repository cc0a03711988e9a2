// SPDX-License-Identifier: BSL-1.0
// Where the masters are, and what work they had.
#pragma once

#include "support/server.hpp"

#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace redlock::bench
{

std::vector<int> ports_of(std::span<const test::server> masters);

/// How many commands of this name, in small letters, these masters have run so far, all of them together. Commands of
/// scripts count as well.
double commands_run(std::span<test::server> masters, std::string_view name);

/// That these masters have used so far, in user and system mode, all threads of all of them together. They must be running.
std::chrono::nanoseconds cpu_of(std::span<const test::server> masters);

} // namespace redlock::bench
