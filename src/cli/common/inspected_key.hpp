// SPDX-License-Identifier: BSL-1.0
// The key of a resource on one master, in words.
#pragma once

#include <redlock/inspection.hpp>

#include <chrono>
#include <string>

namespace redlock::cli
{

/// Returns a time to live such as "2.9 s". Rounds down, because it is a promise.
std::string time_left(std::chrono::milliseconds value);

/// Returns who holds a key that exists, or why it is not a lock.
std::string key_in_words(const master_inspection& master);

} // namespace redlock::cli
