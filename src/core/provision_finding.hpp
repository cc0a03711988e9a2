// SPDX-License-Identifier: BSL-1.0
// What provisioning finds on a master, and which of it can be provisioned.
#pragma once

#include <redlock/provision_finding.hpp>

namespace redlock::core
{

using redlock::provision_finding;

/// Returns whether a master with this finding can be provisioned, or is already.
constexpr bool is_provisionable(provision_finding value) noexcept
{
    return value == provision_finding::unmarked || value == provision_finding::unfinished ||
           value == provision_finding::armed;
}

} // namespace redlock::core
