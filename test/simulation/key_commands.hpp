// SPDX-License-Identifier: BSL-1.0
// The commands that read and change the keys of a simulated master, for clients and scripts.
#pragma once

#include "master_store.hpp"
#include "support/request_reader.hpp"

#include <optional>
#include <string>

namespace redlock::test
{

/// Executes a command with the right number of words, and returns its reply; empty if this isn't such a command.
std::optional<std::string> run_key_command(master_store& keys, const command& words, int protocol);

} // namespace redlock::test
