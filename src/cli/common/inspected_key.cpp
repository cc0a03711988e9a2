// SPDX-License-Identifier: BSL-1.0
// The key of a resource on one master, in words.
#include "cli/common/inspected_key.hpp"

#include <fmt/format.h>

#include <ratio>
#include <string_view>

namespace redlock::cli
{

std::string time_left(std::chrono::milliseconds value)
{
    using tenths = std::chrono::duration<std::chrono::milliseconds::rep, std::deci>;
    const auto whole = std::chrono::floor<tenths>(value).count();
    return fmt::format("{}.{} s", whole / 10, whole % 10);
}

std::string key_in_words(const master_inspection& master)
{
    const std::string_view owner = master.owner_id.view();
    const std::string_view detail = master.detail.view();
    return !owner.empty()   ? fmt::format("held by {}", owner)
           : detail.empty() ? std::string{"has an empty key, which is not a lock"}
                            : fmt::format("has a key that is not a lock (\"{}\")", detail);
}

} // namespace redlock::cli
