// SPDX-License-Identifier: BSL-1.0
// The causes of a failed probe: missing commands, missing permissions and other errors, each once.
#pragma once

#include "cli/doctor/probe.hpp"

#include <string>
#include <vector>

namespace redlock::cli
{

using words = std::vector<std::string>;

/// The causes of a probe's failed steps.
struct causes
{
    words forbidden;        ///< Commands that the ACL forbids the user.
    words unknown;          ///< Commands that the server doesn't know.
    bool keys = false;      ///< The ACL forbids the user the keys of locks.
    bool key_gone = false;  ///< A key that had been granted was missing.
    bool no_answer = false; ///< No answer came in time.
    /// One failed step for each other error. Points into the probe.
    std::vector<const probe_outcome*> others;
};

/// Returns the causes. `made` must outlive them.
causes causes_of(const probe& made);

} // namespace redlock::cli
