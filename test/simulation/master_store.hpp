// SPDX-License-Identifier: BSL-1.0
// The keys of a simulated master, which expire by its clock, and the part of them that survives a restart.
#pragma once

#include "process_clock.hpp"
#include "virtual_world.hpp"

#include <redlock/clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

/// The members of a sorted set: in the order of their scores, and of their names where those are equal.
class sorted_set
{
  public:
    /// Returns whether the member is new.
    bool put(const std::string& member, double score);
    /// Returns false if there is no such member.
    bool remove(const std::string& member);
    std::size_t size() const noexcept { return scores_.size(); }
    std::optional<double> score(const std::string& member) const;
    std::optional<std::size_t> rank(const std::string& member) const;
    const std::string& at(std::size_t rank) const;

  private:
    std::map<std::string, double> scores_;
    std::set<std::pair<double, std::string>> order_;
};

/// The databases of a server, of which one is selected. Keys expire as with Redis: in whole milliseconds, after the last
/// one has passed.
class master_store
{
  public:
    static constexpr std::size_t databases = 16;

    enum class type : std::uint8_t
    {
        text, // A lock's.
        hash,
        sorted_set
    };
    struct entry
    {
        type of = type::text;
        std::string value{};
        std::map<std::string, std::string> fields{};
        sorted_set members{};
        std::optional<clock::time_point> expires_at{}; // By its own clock.

        /// The number of its parts, as a measure of its memory.
        std::size_t size() const noexcept { return 1 + fields.size() + members.size(); }
    };

    explicit master_store(virtual_world& world) : world_{world} {}

    process_clock clock_of_its_own;

    /// The time by its clock.
    clock::time_point now() const noexcept { return clock_of_its_own.shown_at(world_.now()); }
    /// The same, as a server counts it.
    std::chrono::milliseconds whole_now() const noexcept;

    // ---- Keys of the selected database.
    /// Precondition: `number` is less than `databases`.
    void select(std::size_t number) noexcept { selected_ = number; }
    /// Null for a key that doesn't exist or has expired.
    const entry* find(const std::string& key);
    /// The remaining time of a key that exists and expires.
    std::chrono::milliseconds left(const entry& of) const noexcept;
    void put(const std::string& key, std::string value, std::optional<std::chrono::milliseconds> ttl);
    /// A hash or a sorted set, to be changed. It is created if it doesn't exist.
    entry& change(const std::string& key, type of);
    /// Called after such a change, because a server keeps nothing that is empty.
    void remove_if_empty(const std::string& key);
    /// Precondition: the key exists.
    void expire_in(const std::string& key, std::chrono::milliseconds ttl);
    /// Returns false if the key doesn't exist.
    bool remove(const std::string& key);
    /// All existing keys with their values.
    std::vector<std::pair<std::string, std::string>> contents();

    /// Evicts one key. Returns false if there is none.
    bool evict(std::size_t which);

    // ---- All databases.
    /// The number of keys of a database.
    std::size_t size_of(std::size_t which) const;
    /// Exchanges the keys of two databases.
    void swap(std::size_t one, std::size_t other);
    void flush();
    /// Restores the keys as they were then: later writes are lost.
    void go_back_to(clock::time_point truth);
    /// The present keys are the oldest that can be restored.
    void forget_changes() noexcept
    {
        changes_.clear();
        changes_size_ = 0;
    }
    /// How often keys were lost by an eviction, a flush or a restoration.
    std::size_t losses() const noexcept { return losses_; }

  private:
    using database = std::map<std::string, entry>;

    struct change_note
    {
        clock::time_point at; // True.
        std::size_t in;       // The database.
        std::string key;
        std::optional<entry> before;
        std::optional<std::size_t> swapped_with{}; // In the place of key and entry.
        std::size_t size() const noexcept { return before ? before->size() : 1; }
    };

    bool lapsed(const entry& one) const noexcept;
    database& keys() noexcept { return databases_[selected_]; }
    const database& keys() const noexcept { return databases_[selected_]; }
    void note(const std::string& key) { note(selected_, key); }
    void note(std::size_t in, const std::string& key);
    void add(change_note one);
    void undo(change_note last);

    virtual_world& world_;
    std::array<database, databases> databases_;
    std::size_t selected_ = 0;
    std::vector<change_note> changes_; // The most recent ones.
    std::size_t changes_size_ = 0;
    std::size_t losses_ = 0;
};

} // namespace redlock::test
