// SPDX-License-Identifier: BSL-1.0
// All that is known of each error: its name, its message, and the conditions that it meets.
#pragma once

#include <redlock/error.hpp>

#include <boost/system/errc.hpp>

#include <string_view>

namespace redlock
{

/// The conditions that an error meets.
struct condition_set
{
    bool contended = false;
    bool unavailable = false;
    bool lost = false;
    bool misuse = false;
    bool retryable = false;
};

/// The entry of an error in the table.
struct error_entry
{
    std::string_view name; ///< The name of the enumerator.
    condition_set conditions;
    const char* message = nullptr;         ///< What happened and, after a colon, what to do.
    boost::system::errc::errc_t generic{}; ///< The generic error that it equals, or `success` for none.
};

/// Returns the entry of the error, or null for a value that isn't one of the enumerators.
const error_entry* find_error(errc value) noexcept;
const error_entry* find_error(master_errc value) noexcept;

} // namespace redlock
