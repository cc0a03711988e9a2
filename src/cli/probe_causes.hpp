// SPDX-License-Identifier: BSL-1.0
// What stood in the way of a probe: missing commands and rights, and other refusals, each once.
#pragma once

#include "cli/probe.hpp"

#include <string>
#include <vector>

namespace redlock::cli
{

using words = std::vector<std::string>;

/// Why steps of a probe failed.
struct causes
{
    words forbidden;        ///< Commands that the ACL doesn't allow the user.
    words unknown;          ///< Commands that the server doesn't know.
    bool keys = false;      ///< The ACL doesn't allow the user such keys.
    bool key_gone = false;  ///< A key that had been granted was missing.
    bool no_answer = false; ///< No answer came in time.
    /// Of the other reasons, one step each. They belong to the probe.
    std::vector<const probe_outcome*> others;
};

/// `made` has to outlive the result.
causes causes_of(const probe& made);

} // namespace redlock::cli
