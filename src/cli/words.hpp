// SPDX-License-Identifier: BSL-1.0
// The words of the command line, before and after CLI11 reads them.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli
{

/// What stands after the first "--" of `run`; it is taken off the words.
std::optional<std::vector<std::string>> take_command(std::vector<std::string>& words);

/// `run OPTIONS -- RESOURCE -- COMMAND`, for a resource that begins with a dash: it is taken off the command. Empty
/// if there is none.
std::string take_resource(std::vector<std::string>& command);

/// CLI11 gives an option that ends with "=" the next word. Here it gets an empty value instead.
std::vector<std::string> with_empty_values(const std::vector<std::string>& words, const CLI::App& app);

/// Overwrites the passwords in URLs: the words of a process are for everybody to read. To be called once they were read.
void hide_passwords(int count, char** words) noexcept;

} // namespace redlock::cli
