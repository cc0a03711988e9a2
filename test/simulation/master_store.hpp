// SPDX-License-Identifier: BSL-1.0
// The keys of a simulated master, which expire by its clock, and the part of them that survives a restart.
#pragma once

#include "process_clock.hpp"
#include "virtual_world.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

/// Keys expire as with Redis: in whole milliseconds, after the last one has passed.
class master_store
{
  public:
    struct entry
    {
        std::string value;
        std::optional<clock::time_point> expires_at{}; // By its own clock.
        bool is_hash = false;                          // Of another type than a lock's key.
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
    /// A key of another type, which never expires.
    void put_hash(const std::string& key);
    /// Precondition: the key exists.
    void expire_in(const std::string& key, std::chrono::milliseconds ttl);
    /// Returns false if the key doesn't exist.
    bool remove(const std::string& key);
    /// All existing keys with their values.
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
