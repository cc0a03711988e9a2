// SPDX-License-Identifier: BSL-1.0
// The keys of a simulated master, which expire by its clock, and the part of them that survives a restart.
#pragma once

#include "process_clock.hpp"
#include "virtual_world.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

/// The keys that are on disk, and exist again after a restart.
enum class persistence : std::uint8_t
{
    none,     // Nothing.
    everysec, // Those written before the last flush, one or two seconds ago.
    always    // Everything.
};

/// As a server counts them.
inline clock::time_point whole_milliseconds(clock::time_point exact)
{
    return std::chrono::floor<std::chrono::milliseconds>(exact);
}

/// A sorted set. Members with the same score are ordered by their bytes.
class sorted_set
{
  public:
    std::optional<double> score(std::string_view member) const;
    std::optional<std::size_t> rank(std::string_view member) const;
    const std::string& at(std::size_t rank) const { return members_[rank].second; }
    std::size_t size() const noexcept { return members_.size(); }
    void set(const std::string& member, double score);
    /// Returns false if it isn't a member.
    bool remove(std::string_view member);

  private:
    std::vector<std::pair<double, std::string>> members_; // In order.
};

using hash = std::map<std::string, std::string, std::less<>>;

/// Keys expire as with Redis: in whole milliseconds, after the last one has passed.
class master_store
{
  public:
    struct entry
    {
        std::variant<std::string, sorted_set, hash> value;
        std::optional<clock::time_point> expires_at{}; // By its own clock.

        /// Null for another type.
        template <class Type>
        const Type* as() const noexcept
        {
            return std::get_if<Type>(&value);
        }
    };

    explicit master_store(virtual_world& world) : world_{world} {}

    process_clock clock_of_its_own;

    /// The time by its clock.
    clock::time_point now() const noexcept { return clock_of_its_own.shown_at(world_.now()); }
    /// The same, as a server counts it.
    std::chrono::milliseconds whole_now() const noexcept;

    /// Null for a key that doesn't exist or has expired.
    const entry* find(const std::string& key);
    /// The remaining time of a key that exists and expires.
    std::chrono::milliseconds left(const entry& of) const noexcept;
    void put(const std::string& key, std::string value, std::optional<std::chrono::milliseconds> ttl);
    /// Returns the value of a key in order to change it. Creates a missing key, without an expiry. Precondition: the key
    /// has no other type.
    template <class Type>
    Type& edit(const std::string& key)
    {
        if (find(key) == nullptr)
        {
            note(key);
            return keys_[key].value.template emplace<Type>();
        }
        note(key);
        return std::get<Type>(keys_.at(key).value);
    }
    /// Precondition: the key exists.
    void expire_in(const std::string& key, std::chrono::milliseconds ttl);
    /// Returns false if the key doesn't exist.
    bool remove(const std::string& key);
    /// All existing keys with their values; of other types than strings without.
    std::vector<std::pair<std::string, std::string>> contents();

    void flush();
    /// Evicts one key. Returns false if there is none.
    bool evict(std::size_t which);
    /// Restores the keys as they were then: later writes are lost.
    void go_back_to(clock::time_point truth);

  private:
    struct change
    {
        clock::time_point at; // True.
        std::string key;
        std::optional<entry> before;
    };

    bool lapsed(const entry& one) const noexcept;
    void note(const std::string& key);

    virtual_world& world_;
    std::map<std::string, entry> keys_;
    std::vector<change> changes_; // The most recent ones.
};

} // namespace redlock::test
