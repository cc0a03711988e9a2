// SPDX-License-Identifier: BSL-1.0
// The verdicts on masters that were examined: on each, and on all of them together.
#pragma once

#include "cli/exit_code.hpp"
#include "cli/finding.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// How fit a master is, or all of them.
enum class verdict : std::uint8_t
{
    good,    ///< Nothing was found, or only notes.
    usable,  ///< It votes, and something was found; of all: a quorum votes, and something was found.
    unusable ///< It can't vote; of all: fewer than a quorum can.
};

/// One master.
struct master_diagnosis
{
    master_facts facts;
    verdict result = verdict::good;
    std::vector<finding> findings;
};

/// All masters, in their order.
struct diagnosis
{
    std::vector<master_diagnosis> masters;
    verdict result = verdict::good;
    std::size_t usable = 0; ///< How many can vote.
    std::size_t quorum = 0; ///< How many have to.

    /// How many of those that vote may fail yet, with a quorum left.
    std::size_t may_fail() const noexcept { return usable < quorum ? 0 : usable - quorum; }
};

diagnosis diagnose(const std::vector<master_facts>& masters);

/// "good", "usable", "unusable".
std::string_view to_string(verdict value) noexcept;

exit_code exit_code_of(verdict of_all) noexcept;

} // namespace redlock::cli
