// SPDX-License-Identifier: BSL-1.0
// Random commands: those that the library sends, and what is left of them after a mistake.
#pragma once

#include "support/request_reader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace redlock::test
{

inline constexpr const char* right_password = "open sesame";

/// From a seed, the same on every machine.
class chance
{
  public:
    explicit chance(std::uint64_t seed) : numbers_{seed} {}

    /// From 0 to one less than `bound`.
    std::size_t below(std::size_t bound) { return numbers_() % bound; }
    /// True in `percent` of a hundred cases.
    bool in_percent(std::size_t of) { return below(100) < of; }
    template <std::size_t Size>
    std::string one_of(const std::array<std::string_view, Size>& words)
    {
        return std::string{words[below(Size)]};
    }

  private:
    std::mt19937_64 numbers_;
};

/// Few, so that commands meet.
inline constexpr std::array<std::string_view, 4> keys{"a", "b", {"\r\n\0 key", 7}, "redlock-queue:order:a"};

/// Put in the place of right ones; also where a key belongs.
inline constexpr std::array<std::string_view, 5> wrong_words{"", "x", "-1", "99999999999999999999", "a b"};

/// The ids of clients that may be killed.
struct client_ids
{
    std::int64_t first;
    std::int64_t last;
};

/// For a server that gets no ttl below a quarter of an hour, so that expiry doesn't depend on chance.
command random_command(chance& from, client_ids of);
/// AUTH, or HELLO with it. Since 7.2 a server doesn't answer one that fails if answers to others still wait to be
/// written: it has to come alone.
command random_log_in(chance& from);
/// SET of a key that expires at once.
command short_set(chance& from, const std::string& key);
/// The holder of the key, and the remaining time.
command inspection(const std::string& key);
/// As it is sent.
std::string as_bytes(const command& words);

} // namespace redlock::test
