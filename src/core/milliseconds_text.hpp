// SPDX-License-Identifier: BSL-1.0
// Formats milliseconds for messages.
#pragma once

#include <chrono>
#include <string>

namespace redlock::core
{

inline std::string in_ms(std::chrono::milliseconds value)
{
    return std::to_string(value.count()) + " ms";
}

} // namespace redlock::core
