// SPDX-License-Identifier: BSL-1.0
// Verdicts on the examined masters, one by one and all together.
#pragma once

#include "cli/common/exit_code.hpp"
#include "cli/doctor/finding.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// The verdict on one master, or on all of them.
enum class verdict : std::uint8_t
{
    good,    ///< No finding, or notes only.
    usable,  ///< The master votes, with a warning. All: a quorum votes, and a master isn't good.
    unusable ///< The master can't vote. All: fewer than a quorum can vote.
};

/// The diagnosis of one master.
struct master_diagnosis
{
    master_facts facts;
    verdict result = verdict::good;
    std::vector<finding> findings;
};

/// The diagnosis of all masters, in their order.
struct diagnosis
{
    std::vector<master_diagnosis> masters;
    verdict result = verdict::good;
    std::size_t usable = 0; ///< Masters that can vote.
    std::size_t quorum = 0; ///< Votes that a lock needs.

    /// Returns how many of the usable masters may fail before the quorum is lost.
    std::size_t may_fail() const noexcept { return usable < quorum ? 0 : usable - quorum; }
};

diagnosis diagnose(const std::vector<master_facts>& masters);

/// "good", "usable", "unusable".
std::string_view to_string(verdict value) noexcept;

/// Returns that of the verdict, or `system_error` if the system refused connections and fewer than a quorum can vote.
exit_code exit_code_of(const diagnosis& all) noexcept;

} // namespace redlock::cli
