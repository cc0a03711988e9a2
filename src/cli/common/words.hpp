// SPDX-License-Identifier: BSL-1.0
// The words of the command line, before and after CLI11 reads them.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli
{

/// Removes the first "--" of `run` and all that follows, and returns the words after it.
std::optional<std::vector<std::string>> take_command(std::vector<std::string>& words);

/// Removes a resource that begins with a dash from the command and returns it: `run OPTIONS -- RESOURCE -- COMMAND`.
/// Empty if there is none.
std::string take_resource(std::vector<std::string>& command);

/// Gives an option that ends with "=" an empty value. CLI11 would give it the next word.
std::vector<std::string> with_empty_values(const std::vector<std::string>& words, const CLI::App& app);

/// Overwrites the passwords in URLs, since every user can read the command line of a process. Call it after parsing.
void hide_passwords(int count, char** words) noexcept;

} // namespace redlock::cli
