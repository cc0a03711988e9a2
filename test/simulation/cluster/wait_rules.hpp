// SPDX-License-Identifier: BSL-1.0
// A rule for the time that clients wait in the queue of a resource.
#pragma once

#include "queue_rules.hpp"

#include <redlock/clock.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Checks how long clients wait:
///   bounded wait   a resource stays free for too long while a client waits for it
///
/// A client waits while the resource can't be acquired: while the queue master has its key, or too few masters are without it
/// for a quorum. That time consists of the holds of others, their rounds, and keys of clients that ended without a release.
/// During the rest of its wait, the resource is free, and is passed on to the client that is first in the queue. So the wait is
/// bounded by the bound of the time that a resource is free:
///
///   - for the client's own round, and for each round and each leave of others during its wait, one handover: the message to
///     the first client, and its question; as long for a client that gives up after the message instead; or the
///     longest interval of a client that polls;
///   - the pauses that clients announce with the release of a lost round, because other clients are served first by
///     chance;
///   - a heartbeat for each key that expires, because clocks drift. The key of the queue master may expire while others keep
///     the resource from being free; their releases wake the first client only if they held it, and a hold may expire as
///     well.
///
/// The number of rounds is that of the clients ahead, since `fifo` holds, and of newcomers that barge. Faults that may last
/// longer than a handover suspend the rule.
class wait_rules
{
  public:
    struct setting
    {
        std::size_t masters;
        std::size_t quorum;
        bool regular;            // As for `queue_rules`.
        clock::duration passage; // The longest time that bytes take in one direction.
    };

    explicit wait_rules(const setting& its) noexcept : setting_{its} {}

    /// Returns a broken rule; empty if no rule is broken. `key_until`: the true time until which the master has the key of
    /// the command; empty if it doesn't have it.
    std::optional<violation> look(const executed_command& seen, std::optional<clock::time_point> key_until);

    /// Something may last longer than usual.
    void disturb() noexcept { calm_ = false; }
    bool suspended() const noexcept { return !calm_ || !setting_.regular; }
    void calm_down(clock::duration passage);

  private:
    /// The state of a waiting client when it entered the queue.
    struct waiting_client
    {
        bool receives; // Messages.
        clock::duration free;
        clock::duration allowed;
    };
    struct resource
    {
        std::size_t queue_master;
        bool moved = false;
        std::vector<clock::time_point> key_until{}; // By master. In the past if it doesn't have the key.
        std::vector<std::string> owners{};          // By master: the owner id that it granted last.
        clock::time_point seen{};                   // The last command.
        clock::duration free{0};                    // For how long it has been free altogether.
        clock::duration allowed{0};                 // For how long it may have been.
        clock::time_point paused_until{};           // By a client that has announced a pause.
        std::set<std::string, std::less<>> owner_ids{};
        std::map<std::string, waiting_client, std::less<>> clients{};
    };

    void pass_time(resource& of, clock::time_point now) const;
    clock::time_point held_until(const resource& of) const;
    void note(resource& of, const executed_command& seen) const;
    clock::duration handover(const resource& of) const;

    setting setting_;
    bool calm_ = true;
    std::map<std::string, resource, std::less<>> resources_; // By key.
};

} // namespace redlock::test
