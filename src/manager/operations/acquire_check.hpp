// SPDX-License-Identifier: BSL-1.0
// Checks the arguments of an acquire.
#pragma once

#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <string>

namespace redlock::manager
{

/// An invalid argument, with its value and the allowed range. Without an error if all arguments are valid.
struct refused_argument
{
    error_code error;
    std::string complaint;
};

refused_argument check(const lock_service& service, const acquire_call& call);

} // namespace redlock::manager
