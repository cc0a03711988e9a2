// SPDX-License-Identifier: BSL-1.0
// The resources of a run.
#include "resource_names.hpp"

#include "chance.hpp"

#include "core/queue_master.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace redlock::test
{

namespace
{

constexpr std::string_view prefix = "lock:"; // Of `config::key_prefix`.
constexpr std::string_view label = "invoices";
// The length of a command decides what fits into a buffer that is almost full.
static_assert(label.size() == 8, "another length gives every seed another trace");

constexpr std::size_t slots = 64;      // Divides the size of the library's cache.
constexpr std::size_t counters = 1024; // Of a guarded master.
constexpr std::size_t max_salts = 1U << 24U;

} // namespace

std::string key_of(const std::string& resource)
{
    return std::string{prefix} + resource;
}

const std::string& resource_names::name(std::size_t number)
{
    // Shared by all runs with the same masters.
    static std::map<std::vector<std::string>, std::map<std::size_t, std::string>> all;
    std::string& known = all[masters_][number];
    if (known.empty())
    {
        known = search(number);
    }
    return known;
}

std::size_t resource_names::number_in(std::string_view key)
{
    const std::size_t before = prefix.size() + label.size() + 1;
    std::size_t number = 0;
    if (key.size() <= before ||
        std::from_chars(key.data() + before, key.data() + key.size(), number).ec != std::errc{})
    {
        throw std::logic_error{"a master got a key that is not of a resource: " + std::string{key}};
    }
    return number;
}

/// Returns whether the masters have their weights as queue master in this order, the last one first.
bool resource_names::fits(std::uint64_t key, const std::vector<std::size_t>& order) const
{
    std::uint64_t highest = 0;
    return std::all_of(
        order.begin(), order.end(),
        [&](std::size_t master)
        {
            const std::uint64_t weight = core::queue_weight(core::stable_hash(masters_[master]), key);
            return weight > std::exchange(highest, weight);
        });
}

std::string resource_names::search(std::size_t number)
{
    const bool is_beside = number == resource::beside_first;
    const std::uint64_t divisor = is_beside ? counters : slots;
    const std::uint64_t slot = is_beside ? core::stable_hash(key_of(name(0))) % counters : number % slots;

    std::vector<std::size_t> order(masters_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto rank = [number](std::size_t master) { return chance::mixed((number << 8U) + master + 1); };
    std::sort(
        order.begin(), order.end(),
        [&](std::size_t left, std::size_t right) { return rank(left) < rank(right); });

    constexpr std::string_view digits = "0123456789abcdef";
    std::string found = fmt::format("{}-{:02}-000000", label, number);
    for (std::size_t salt = 0; salt < max_salts; ++salt)
    {
        std::size_t left = salt;
        for (std::size_t at = found.size(); left != 0; left /= digits.size())
        {
            found[--at] = digits[left % digits.size()];
        }
        if (const std::uint64_t key = core::stable_hash(key_of(found));
            key % divisor == slot && fits(key, order))
        {
            return found;
        }
    }
    throw std::logic_error{"no name for a resource"};
}

} // namespace redlock::test
