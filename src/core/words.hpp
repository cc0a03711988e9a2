// SPDX-License-Identifier: BSL-1.0
// Reads a text of words that a single space separates.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::core
{

/// Takes the words of a text one by one. Once one doesn't fit, it has failed.
class words
{
  public:
    explicit words(std::string_view text) noexcept : left_{text} {}

    /// Returns whether all words fitted, and none is left.
    bool complete() const noexcept { return ok_ && ended_; }
    /// Returns whether no word is left.
    bool ended() const noexcept { return ended_; }

    std::string_view next() noexcept
    {
        ok_ = ok_ && !ended_;
        const std::size_t end = left_.find(' ');
        ended_ = end == std::string_view::npos;
        const std::string_view word = left_.substr(0, end);
        left_.remove_prefix(ended_ ? left_.size() : end + 1);
        return word;
    }

    std::string identifier(std::size_t length)
    {
        const std::string_view word = next();
        const auto is_digit = [](char each)
        { return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f'); };
        ok_ = ok_ && word.size() == length && std::all_of(word.begin(), word.end(), is_digit);
        return std::string{word};
    }

    /// From 1 to `most`, as `std::to_string` writes it.
    std::int64_t number(std::int64_t most) noexcept
    {
        const std::string_view word = next();
        std::int64_t value = 0;
        const char* const end = word.data() + word.size();
        const auto [stop, error] = std::from_chars(word.data(), end, value);
        const bool is_plain = error == std::errc{} && stop == end && !word.starts_with('0');
        ok_ = ok_ && is_plain && value >= 1 && value <= most;
        return value;
    }

    template <class Value, std::size_t size>
    Value one_of(const std::array<std::string_view, size>& names) noexcept
    {
        const auto found = std::find(names.begin(), names.end(), next());
        ok_ = ok_ && found != names.end();
        return static_cast<Value>(found - names.begin());
    }

  private:
    std::string_view left_;
    bool ok_ = true;
    bool ended_ = false;
};

} // namespace redlock::core
