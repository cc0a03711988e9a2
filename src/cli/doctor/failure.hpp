// SPDX-License-Identifier: BSL-1.0
// Why a master can't be used, and what to do about it.
#pragma once

#include "cli/doctor/finding.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli
{

/// Returns the finding for a master whose examination ended with an error.
finding failure_of(const master_facts& one, const std::vector<master_facts>& all);

/// Returns the advice in the library's message, which follows its colon, as a sentence.
std::string advice_in(const error_code& reason);

/// A setting by which a server refuses commands.
struct refusing_setting
{
    std::string_view kind; ///< Of the finding.
    const char* advice;
};

/// Returns the setting that causes an error; empty if none does.
std::optional<refusing_setting> setting_behind(const error_code& reason);

} // namespace redlock::cli
