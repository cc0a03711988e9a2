// SPDX-License-Identifier: BSL-1.0
// Real servers as a guarded group, and clients that share one log of events.
#pragma once

#include "integration/fixture.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test
{

/// How a server keeps its data.
enum class persistence : std::uint8_t
{
    none,
    snapshot,    ///< RDB, written by SAVE.
    append_only, ///< AOF, written before each reply.
    both         ///< AOF as above, and an RDB file that is older: it is written when the master is armed.
};

/// Servers with their own properties, which a test needs that restarts or replicates them. `program` has to be installed.
server_options keeping_data(const std::string& program, persistence how);

/// Servers that are armed, as provisioning leaves them. Written by hand from the documented format, without the library.
class guarded_masters
{
  public:
    guarded_masters(std::size_t masters, std::chrono::milliseconds max_ttl, const server_options& how = {});
    guarded_masters(std::vector<server> servers, std::chrono::milliseconds max_ttl);

    server& at(std::size_t master) { return servers_.at(master); }
    std::size_t size() const { return servers_.size(); }
    std::vector<server>& servers() { return servers_; }
    std::chrono::milliseconds max_ttl() const { return max_ttl_; }
    /// Returns options with frequent looks at the masters, and a node timeout that fits the group's ttl.
    redlock::config options() const;
    /// Returns the text of a master's marker in its present database; empty if it has none.
    std::string marker(std::size_t master);
    /// Returns the replication id that a master has now.
    std::string replication_id(std::size_t master);
    /// Returns whether a master has a marker that entitles it to vote.
    bool is_armed(std::size_t master);
    /// Returns the largest counter of a master, including its floor; 0 for none.
    std::uint64_t largest_counter(std::size_t master);

    // ---- Faults of one master.
    void restart_with_data(std::size_t master);
    void restart_without_data(std::size_t master);
    /// Demotes it to a replica of a master that doesn't exist, and promotes it.
    void demote_and_promote(std::size_t master);
    /// Kills it, and promotes the replica under its address. Needs `transport::tcp`.
    void fail_over(std::size_t master, server replica);
    /// Demotes it until it has the data of a former replica, and promotes it. Needs `transport::tcp`. Throws `stuck`.
    void fall_back_to(std::size_t master, server& replica);

    static constexpr const char* group = "0123456789abcdef";
    static constexpr const char* guard = "lock::redlock-guard";
    static constexpr const char* fence = "lock::redlock-fence";
    static constexpr const char* members = "lock::redlock-members";

  private:
    void arm(std::size_t master);

    std::chrono::milliseconds max_ttl_;
    std::vector<server> servers_;
};

/// Managers of one group, whose events of masters are recorded together: any of them may be the one that sees a short
/// quarantine.
class guarded_clients
{
  public:
    guarded_clients(const redlock::config& options, std::size_t managers);
    guarded_clients(const guarded_clients&) = delete;
    guarded_clients& operator=(const guarded_clients&) = delete;

    redlock::lock_manager& operator[](std::size_t manager);
    std::size_t size() const { return managers_.size(); }
    event_log& events() { return events_; }

    /// Returns how many events were recorded so far, as the beginning of a later wait.
    std::size_t mark() const { return events_.events().size(); }
    /// Waits for a quarantine of a master since the mark. Throws `stuck`.
    redlock::master_quarantined wait_for_quarantine(std::size_t master, std::size_t since);
    /// Waits for the end of a quarantine of a master since the mark. Throws `stuck`.
    void wait_for_armed(std::size_t master, std::size_t since);
    /// Returns how many quarantines of any master were reported since the mark.
    std::size_t quarantines(std::size_t since) const;
    /// Returns whether a master was armed since the mark.
    bool is_armed(std::size_t master, std::size_t since) const;
    /// Returns whether a master has refused to be armed, and why is known.
    bool is_arming_refused(std::size_t master) const;

    /// Acquires, however many rounds that takes. Throws with the report if it fails.
    redlock::lease win(std::size_t manager, const std::string& resource, std::chrono::milliseconds ttl);

  private:
    event_log events_{log_of::masters};
    event_loop loop_{2};
    std::list<redlock::lock_manager> managers_;
};

/// A time in which a client held the resource, by its own word: it began no later, and ended no earlier.
struct holding
{
    clock::time_point from;
    clock::time_point until;
    std::uint64_t token;
};

/// Returns what is wrong with the holdings of all clients of a resource: two at a time, or a token that doesn't rise. Empty for
/// nothing.
std::vector<std::string> contradictions(std::vector<holding> all);

/// Managers that acquire one resource all the time, each on its own thread.
class contest
{
  public:
    contest(guarded_clients& clients, std::chrono::milliseconds ttl);
    contest(const contest&) = delete;
    contest& operator=(const contest&) = delete;
    ~contest();

    /// Waits until the resource was acquired once more, or more often. Throws `stuck`.
    void wait_for_holdings(std::size_t more);
    /// Ends it, and returns all holdings.
    std::vector<holding> finish();

  private:
    void take_part(redlock::lock_manager& locks);
    void record(const holding& one);
    void stop();

    std::chrono::milliseconds ttl_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::vector<holding> all_;
    std::string failure_;
    std::vector<std::thread> threads_;
};

} // namespace redlock::test
