// SPDX-License-Identifier: BSL-1.0
// Serialises commands as RESP, directly into an output buffer.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace redlock::resp
{

/// A number as an argument of a command, without an allocation:
/// `append_command(out, {"PEXPIRE", key, decimal{ttl_ms}})`.
class decimal
{
  public:
    explicit decimal(std::integral auto value) noexcept
    {
        static_assert(std::numeric_limits<decltype(value)>::digits10 < 20, "20 characters hold 64 bits");
        const auto written = std::to_chars(digits_.data(), digits_.data() + digits_.size(), value);
        size_ = static_cast<std::size_t>(written.ptr - digits_.data());
    }

    std::string_view text() const noexcept { return {digits_.data(), size_}; }
    /// The view is valid as long as this object.
    operator std::string_view() const noexcept { return text(); }

  private:
    std::array<char, 20> digits_;
    std::size_t size_;
};

/// Appends one command: its name and its arguments, which may contain any bytes. Appends nothing if there are none.
void append_command(std::string& out, std::span<const std::string_view> arguments);
void append_command(std::string& out, std::initializer_list<std::string_view> arguments);

} // namespace redlock::resp
