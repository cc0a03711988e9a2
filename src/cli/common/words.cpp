// SPDX-License-Identifier: BSL-1.0
// Handles the words that CLI11 can't.
#include "cli/common/words.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redlock::cli
{

std::optional<std::vector<std::string>> take_command(std::vector<std::string>& words)
{
    const auto dashes = std::find(words.begin(), words.end(), "--");
    if (words.empty() || words.front() != "run" || dashes == words.end())
    {
        return std::nullopt;
    }
    std::vector<std::string> command{dashes + 1, words.end()};
    words.erase(dashes, words.end());
    return command;
}

std::string take_resource(std::vector<std::string>& command)
{
    if (command.size() < 2 || command[1] != "--")
    {
        return {};
    }
    std::string resource = std::move(command.front());
    command.erase(command.begin(), command.begin() + 2);
    return resource;
}

std::vector<std::string> with_empty_values(const std::vector<std::string>& words, const CLI::App& app)
{
    std::vector<std::string> all;
    for (auto word = words.begin(); word != words.end(); ++word)
    {
        const std::string name = word->substr(0, word->find('='));
        const CLI::Option* option =
            word->starts_with("--") && name.size() > 2 ? app.get_option_no_throw(name) : nullptr;
        const bool empty =
            option != nullptr && option->get_items_expected_max() > 0 && name.size() + 1 == word->size();
        if (word->compare("--") == 0)
        {
            all.insert(all.end(), word, words.end());
            return all;
        }
        all.push_back(empty ? name : *word);
        if (empty)
        {
            all.emplace_back();
        }
    }
    return all;
}

void hide_passwords(int count, char** words) noexcept
{
    for (int index = 1; index < count; ++index)
    {
        const std::string_view word{words[index]};
        if (word == "--")
        {
            return;
        }
        const std::size_t scheme = word.find("://");
        if (scheme == std::string_view::npos)
        {
            continue;
        }
        const std::size_t user = scheme + 3;
        const std::size_t at = word.substr(0, word.find('/', user)).rfind('@');
        const std::size_t colon = word.find(':', user);
        if (at != std::string_view::npos && colon < at)
        {
            std::fill(words[index] + colon + 1, words[index] + at, '*');
        }
    }
}

} // namespace redlock::cli
