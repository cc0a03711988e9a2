// SPDX-License-Identifier: BSL-1.0
// The events of a run, as a hash and, on request, as lines of text.
#pragma once

#include "chance.hpp"
#include "support/request_reader.hpp"

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace redlock::test
{

/// Formats the time since the beginning of the run in seconds, with six decimal places.
std::string in_seconds(clock::time_point when);

class trace
{
  public:
    /// Prints lines to `out` unless it is null.
    explicit trace(std::FILE* out) noexcept : out_{out} {}

    bool printing() const noexcept { return out_ != nullptr; }
    std::uint64_t hash() const noexcept { return hash_; }

    /// Adds numbers to the hash: of events, times, processes, errors.
    void add(std::initializer_list<std::uint64_t> numbers) noexcept
    {
        for (const std::uint64_t each : numbers)
        {
            hash_ = chance::mixed(hash_ + each + 0x9e3779b97f4a7c15U);
        }
    }
    /// Adds a command and its reply: keys by the numbers of their resources, errors by their code words. Names, passwords,
    /// scripts and the texts of servers are left out. Throws `std::logic_error` for a command without a number.
    void add_exchange(std::string_view what, const command& words, std::string_view reply);
    /// Adds a report without its texts.
    void add_report(const report& from);
    void add_error(const error_code& error);
    /// Prints one line. Its content doesn't enter the hash. Only if `printing()`.
    void
    print(clock::time_point truth, std::string_view who, clock::time_point its_clock, std::string_view what);

  private:
    /// Adds bytes of the protocol to the hash. Names and messages are never added: see trace_numbers.hpp.
    void add_bytes(std::string_view bytes) noexcept;
    void add_words(const command& words, std::size_t first);
    void add_reply(std::string_view what, std::string_view reply);

    std::FILE* out_;
    std::uint64_t hash_ = 0;
};

} // namespace redlock::test
