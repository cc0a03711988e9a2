// SPDX-License-Identifier: BSL-1.0
// What a section returns: figures and plots.
#include "harness/figures.hpp"

#include <cmath>

#include <fmt/format.h>

namespace redlock::bench
{

bool figure::met() const
{
    constexpr double shown = 100;
    return std::round(judged_value() * shown) <= std::round(goal.value_or(0) * shown);
}

std::string figure::label() const
{
    return unit.empty() ? name : fmt::format("{}, {}", name, unit);
}

} // namespace redlock::bench
