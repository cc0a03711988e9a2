// SPDX-License-Identifier: BSL-1.0
// Decimal arguments of commands.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace redlock::net
{

/// A decimal number, without an allocation.
class decimal
{
  public:
    explicit decimal(std::integral auto value) noexcept
    {
        const auto result = std::to_chars(bytes_.data(), bytes_.data() + bytes_.size(), value);
        size_ = static_cast<std::size_t>(result.ptr - bytes_.data());
    }
    explicit decimal(std::chrono::milliseconds value) noexcept : decimal{value.count()} {}

    std::string_view view() const noexcept { return {bytes_.data(), size_}; }

  private:
    std::array<char, 20> bytes_;
    std::size_t size_ = 0;
};

} // namespace redlock::net
