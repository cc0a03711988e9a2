// SPDX-License-Identifier: BSL-1.0
// Whether what an acquire was called with can be used.
#pragma once

#include "manager/lock_service.hpp"
#include "manager/operations.hpp"

#include <string>

namespace redlock::manager
{

/// What was wrong, and what would be right. No error: nothing was.
struct refused_argument
{
    error_code error;
    std::string complaint;
};

refused_argument check(const lock_service& service, const acquire_call& call);

} // namespace redlock::manager
