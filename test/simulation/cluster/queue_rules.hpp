// SPDX-License-Identifier: BSL-1.0
// Rules for the wait queues: the order in which clients are served, and the messages that wake them.
#pragma once

#include "simulation/sim_master.hpp"
#include "wire_rules.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::test
{

/// A command that a master has executed, as the network shows it.
struct executed_command
{
    std::size_t master;
    std::size_t losses;    // See `sim_master::losses`.
    clock::time_point at;  // True.
    std::int64_t its_time; // By the master's clock, in microseconds.
    int origin;            // The process that has sent it.
    bool counts_queues;    // Otherwise a release is plain there, and changes no queue.
    const std::string& what;
    const command& words;
    const std::string& reply;
    const std::vector<publication>& published;
};

/// Checks the queues from the commands that masters execute and the messages that they publish. The rules:
///   fifo                   a client is served ahead of another one that has entered the queue earlier, with an earlier arrival
///   one wake per release   a command wakes more than one client, or the end of a lost round any; in a calm network, the
///                          releases of one lease wake two clients at one master, or one client twice, unless it has
///                          just moved to another queue master
///   strict                 in strict order, a lease overtakes a client that waits
///
/// The queue of a master is known from the questions that it has refused, and the releases that name a member. The rule
/// `fifo` holds at each master of its own accord, whatever happens to clients and network, as long as both clients ask there
/// regularly, so it needs no calm. The others need it only as far as said below.
///
/// Calm: the network and the masters had no fault since the beginning of the run, or since `calm_down`.
class queue_rules
{
  public:
    struct setting
    {
        std::size_t quorum;
        bool strict; // All clients use the strict order.
        bool
            regular; // No master refuses commands or has a slow disk, and all answer within the node timeout.
        clock::duration jitter; // Of the network in which the workers run.
    };

    explicit queue_rules(const setting& its) noexcept : setting_{its} {}

    /// Returns a broken rule; empty if no rule is broken.
    std::optional<violation> look(const executed_command& seen);
    /// A user of a process got a lease. Returns a broken rule.
    std::optional<violation>
    won(int origin, const std::string& key, const std::string& owner_id, clock::time_point at) const;

    /// The network or a master has a fault.
    void disturb() noexcept { calm_ = false; }
    /// Something happened to this process that may delay what it does.
    void disturb(int process) { disturbed_.insert(process); }
    /// The faults have ended, and no client remembers one.
    void calm_down(clock::duration jitter)
    {
        calm_ = true;
        setting_.jitter = jitter;
        disturbed_.clear();
    }
    /// The queues of a master are lost, or its clock was set.
    void forget(std::size_t master, clock::time_point at);

    /// How often two clients were compared.
    std::size_t comparisons() const noexcept { return comparisons_; }

  private:
    /// When a client entered the queue of a master, and its arrival in microseconds by the clock of the master.
    struct position
    {
        clock::time_point entered;
        std::int64_t arrival;

        /// Returns whether it is ahead in both.
        bool precedes(const position& other) const
        {
            return arrival < other.arrival && entered < other.entered;
        }
    };
    /// A client in the queue of a master. If it was dropped meanwhile, it was entered again: its position is between these
    /// two. A client whose round was lost is entered by its age in whole milliseconds.
    struct waiting_client
    {
        std::string name; // <manager id>:<number>
        position first;
        position last;
        clock::time_point asked;                  // The last time.
        std::optional<clock::time_point> woken{}; // And it hasn't asked since.
        bool receives = true;                     // Messages.
        int origin = 0;
        bool barges = false;
    };
    struct queue
    {
        std::vector<waiting_client> clients{};
        std::size_t losses = 0;
        std::optional<clock::time_point> lost{}; // The last time.
        std::string granted{};                   // The owner id.
    };
    struct question
    {
        std::size_t master;
        std::string name;
        position first;
        bool waited; // The client was in the queue.
        bool barges;
        std::optional<clock::time_point> refused{};
        bool granted = false;
    };
    /// What is known of an owner id.
    struct round_seen
    {
        clock::time_point began; // The first command.
        std::size_t grants = 0;
        std::optional<clock::time_point> quorum_at{};
        std::optional<question> asked{};
        std::vector<std::pair<std::size_t, std::string>>
            woken{}; // By its releases: the master and the client.
    };
    /// The master that is asked about a resource.
    struct asked_master
    {
        std::size_t index;
        bool moved = false; // Another one was asked before.
    };
    /// The queue master of a client.
    struct home
    {
        std::size_t master;
        clock::time_point since;
    };

    std::optional<violation> look_at_question(const executed_command& seen);
    std::optional<violation> look_at_release(const executed_command& seen);
    std::optional<violation> look_at_messages(const executed_command& seen, queue& at, round_seen& of);
    std::optional<violation> check_order(const executed_command& seen, const queue& at, const question& of);
    queue& queue_at(const executed_command& seen);
    void count_grant(const executed_command& seen, round_seen& of) const;
    bool could_ask(int origin, const std::string& key, std::size_t master, clock::time_point at) const;
    bool is_calm(int process) const { return calm_ && !disturbed_.contains(process); }

    static bool still_waits(const waiting_client& one, clock::time_point at);
    static waiting_client* find(queue& in, std::string_view name);
    static void remove(queue& from, std::string_view name);

    setting setting_;
    bool calm_ = true;
    std::set<int> disturbed_;
    std::map<std::pair<std::string, std::size_t>, queue> queues_; // By key and master.
    std::unordered_map<std::string, round_seen> rounds_;          // By owner id.
    std::map<std::string, asked_master> asked_;                   // By key.
    std::map<std::pair<std::string, std::string>, home> homes_;   // By key and client.
    std::map<std::pair<int, std::size_t>, clock::time_point>
        handshakes_; // The last one, by process and master.
    std::map<std::pair<int, std::string>, clock::time_point>
        losses_; // The last lost round, by process and key.
    mutable std::size_t comparisons_ = 0;
};

} // namespace redlock::test
