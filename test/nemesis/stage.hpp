// SPDX-License-Identifier: BSL-1.0
// The masters with a proxy before each, the client processes, and what can be done to them.
#pragma once

#include "beliefs.hpp"
#include "resource.hpp"
#include "support/child_process.hpp"
#include "support/proxy.hpp"
#include "support/server.hpp"
#include "support/settable_clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace redlock::nemesis
{

using namespace std::chrono_literals;

/// How masters keep the keys that clients rely on.
enum class keeping : std::uint8_t
{
    on_disk, // AOF, always flushed: a restarted master has them again.
    away,    // Nothing is on disk; a killed master stays away for the longest ttl.
    lost,    // Nothing is on disk, masters or late replicas come back at once: nothing is promised then.
    broken,  // The same, and their clocks jump.
    guarded, // Guarded mode. A master may lose its keys, or fall back to older ones, if a minority is unarmed then.
    guarded_at_random // The same, without looking at the others: it may end without a lock, and never with two.
};

std::string_view name_of(keeping how);
constexpr bool is_guarded(keeping how) noexcept
{
    return how == keeping::guarded || how == keeping::guarded_at_random;
}
/// Returns whether no two clients may hold a resource.
constexpr bool is_exclusive(keeping how) noexcept
{
    return how != keeping::lost && how != keeping::broken;
}
/// Returns whether a released key can't come back.
constexpr bool is_lasting(keeping how) noexcept
{
    return how == keeping::on_disk || how == keeping::away;
}

/// The max_ttl of a guarded group: the longest ttl of any client.
inline constexpr std::chrono::milliseconds guarded_max_ttl = 2s;

/// The longest ttl of any client, with a second on top.
inline constexpr std::chrono::milliseconds longest_ttl = 3s;

/// From the seed.
class chance
{
  public:
    explicit chance(std::uint64_t seed) : numbers_{seed} {}
    std::uint64_t number() { return numbers_(); }
    std::size_t below(std::size_t bound) { return numbers_() % bound; }
    std::chrono::milliseconds between(std::chrono::milliseconds least, std::chrono::milliseconds most)
    {
        return least + std::chrono::milliseconds{below(static_cast<std::size_t>((most - least).count()) + 1)};
    }

  private:
    std::mt19937_64 numbers_;
};

/// What most masters of a round have on disk.
enum class files : std::uint8_t
{
    none,
    rdb,
    aof,
    both
};

std::string_view name_of(files kept);
files draw_files(chance& from);

/// How one round is played.
struct scene
{
    std::size_t masters = 3;
    std::size_t clients = 3;
    std::size_t resources = 2;
    keeping keys = keeping::on_disk;
    files kept = files::none;
    bool replicas = false;              // Each master has one.
    bool own_network = false;           // Which may be unplugged as a whole.
    std::chrono::milliseconds claim{0}; // Clients lie by so much, to see that they are caught.
    bool compares = true;               // The resource; false to see that it is caught.
};

class stage
{
  public:
    /// Counts what happens by its name.
    stage(scene what, chance& from, std::map<std::string, std::size_t>& counts);

    /// Draws something bad and does it to a client, a master, or seldom to all masters; not to one that suffers already.
    void harm();
    /// Ends what was to last until now.
    void heal_what_is_due();
    /// Ends all that is bad.
    void heal();
    /// Ends all clients in order. Returns which don't end, or ended in another way than with exit code 0, in words.
    std::vector<std::string> end_clients();
    /// What all clients have written down so far.
    std::vector<diary> diaries() const;
    /// Of keys that are on a quorum: who is their owner.
    std::vector<std::string> owners_on_a_quorum();
    /// The logs of all resources; none in plain mode.
    std::vector<std::vector<request>> requests();

    const scene& what() const noexcept { return scene_; }

  private:
    struct fault;
    struct one_master
    {
        std::unique_ptr<test::settable_clock> clock;
        std::unique_ptr<test::server> server;
        std::unique_ptr<test::proxy> proxy;
        std::unique_ptr<test::server> replica; // If there are any.
        std::unique_ptr<test::proxy> link;     // To its replica.
        const fault* suffers = nullptr;
        instant suffers_until = 0;
    };
    struct one_client
    {
        test::child_process process;
        std::size_t number = 0;
        instant stopped_until = 0;
    };

    /// Something bad for a master.
    struct fault
    {
        const char* name;
        void (stage::*begin)(one_master&);
        void (stage::*end)(one_master&);
        bool loses_keys = false; // Or falls back to older ones. Guarded mode survives that.
        bool moves_clock = false;
    };
    static const std::vector<fault>& faults();

    std::unique_ptr<test::server> start_server(const one_master& one);
    void attach_replica(one_master& one);
    void wait_for_replicas();
    void provision();
    bool is_armed(one_master& one);
    bool may_happen(const fault& what, const one_master& to);
    std::string output_of(std::size_t client) const;
    void start_client(one_client& one);
    std::string wrong_end(const one_client& one) const;
    void unplug();
    void harm_client();
    void harm_master(one_master& one, const fault& what, std::chrono::milliseconds longest);

    void nothing(one_master&) {}
    void kill(one_master& one);
    void start_again(one_master& one);
    void stop(one_master& one);
    void go_on(one_master& one);
    void delay(one_master& one);
    void hold_requests(one_master& one);
    void hold_replies(one_master& one);
    void hold_both(one_master& one);
    void let_go(one_master& one);
    void drop_requests(one_master& one);
    void drop_replies(one_master& one);
    void pass_on(one_master& one);
    void split(one_master& one);
    void reset(one_master& one);
    void close(one_master& one);
    void mark_stale(one_master& one);
    void refuse(one_master& one);
    void flush(one_master& one);
    void swap_databases(one_master& one);
    void promote(one_master& one);
    void cut_off_replica(one_master& one);
    void fail_over(one_master& one);
    void clock_ahead(one_master& one);
    void clock_back(one_master& one);
    void forget_scripts(one_master& one);

    scene scene_;
    chance& chance_;
    std::map<std::string, std::size_t>& counts_;
    test::temporary_directory directory_;
    std::optional<checked_resource> resource_; // In guarded mode.
    std::vector<one_master> masters_;
    std::vector<one_client> clients_;
    std::size_t started_ = 0; // Clients, those that were killed included.
};

/// What CLOCK_BOOTTIME shows.
instant now();

} // namespace redlock::nemesis
