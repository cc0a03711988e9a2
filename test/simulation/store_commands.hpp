// SPDX-License-Identifier: BSL-1.0
// The commands on keys that the library's scripts call.
#pragma once

#include "master_store.hpp"
#include "reply_value.hpp"
#include "support/request_reader.hpp"

#include <optional>
#include <string_view>

namespace redlock::test
{

/// Runs a command on the keys of a master. Empty for a command that isn't simulated.
std::optional<reply_value> run_on(master_store& keys, const command& words);
/// Returns whether a command changes keys. The name is in capitals.
bool is_write(std::string_view name);

} // namespace redlock::test
