// SPDX-License-Identifier: BSL-1.0
// What the tests of all plans of provisioning share.
#pragma once

#include "core/provision_plan.hpp"

#include <string>
#include <vector>

namespace redlock::test
{

/// A replication id of 40 times this digit.
inline std::string replication_id(char digit)
{
    return std::string(core::replication_id_length, digit);
}

inline std::vector<provision_finding> findings(const core::provision_plan& of)
{
    std::vector<provision_finding> found;
    for (const core::provision_seat& each : of.masters)
    {
        found.push_back(each.found);
    }
    return found;
}

} // namespace redlock::test
