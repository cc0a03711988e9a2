// SPDX-License-Identifier: BSL-1.0
// The resources of a run: numbers, and names on which no decision of the library depends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

/// Numbers of resources that have a purpose; those from 0 are what the workers compete for.
namespace resource
{

inline constexpr std::size_t beside_first = 8; // It has the same counter as the first.
inline constexpr std::size_t shared = 9;
inline constexpr std::size_t kept = 10;
inline constexpr std::size_t wanted = 11;
inline constexpr std::size_t refused = 12;
inline constexpr std::size_t crowded = 13;
inline constexpr std::size_t contested = 14;
inline constexpr std::size_t handed_over = 15;
inline constexpr std::size_t own = 16; // Plus the number of the process.

} // namespace resource

/// Names resources by their numbers.
///
/// The library hashes names, which decides which master is the queue master of a resource, and which resources share a
/// slot of a cache. Each name therefore ends with a salt, searched so that both follow from the number alone. Neither the label
/// of the resources nor the run ids of the masters can be noticed in the trace.
class resource_names
{
  public:
    explicit resource_names(std::vector<std::string> masters) : masters_{std::move(masters)} {}

    const std::string& name(std::size_t number);
    /// Returns the number of the resource to which a key belongs.
    static std::size_t number_in(std::string_view key);

  private:
    bool fits(std::uint64_t key, const std::vector<std::size_t>& order) const;
    std::string search(std::size_t number);

    std::vector<std::string> masters_;
};

/// The key of a resource.
std::string key_of(const std::string& resource);

} // namespace redlock::test
