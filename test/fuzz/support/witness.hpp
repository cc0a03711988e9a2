// SPDX-License-Identifier: BSL-1.0
// What a witness of the whole network knows: what was asked of each master, and what each answered to which command.
// It has no part in the library but the parser; what a lease rests on is computed again, from the bytes alone.
#pragma once

#include "support/request_reader.hpp"

#include <redlock/clock.hpp>

#include "resp/value.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace redlock::test
{

/// What a command of the library is for.
enum class purpose : std::uint8_t
{
    other,    // Of the handshake, a question, or a sign of life.
    greeting, // It is answered with our client id.
    subscribe, // It is answered by a push, or refused by a reply. PUBLISH and HELLO follow, which end the request.
    publish,
    set,
    ask, // A question of the wait queue: it sets the key, or doesn't.
    extend,
    release
};

/// What a reply is to a request of the subscription.
enum class part_of_request : std::uint8_t
{
    one,
    last,
    none // The client has to end the connection.
};

/// One command as it was written.
struct written
{
    purpose what = purpose::other;
    std::string owner_id{}; // Of a SET and the scripts.
    std::chrono::milliseconds ttl{0};
    clock::time_point at{};
    bool in_full = false; // A script that isn't named by its digest.
    bool rejoins = false; // A SET of a lease that was handed out before.
    std::string member{}; // Of a question: the client in the wait queue.
};

class witness
{
  public:
    static constexpr std::size_t max_fuzz_masters = 5;

    explicit witness(std::size_t masters, double drift_factor)
        : masters_{masters}, drift_factor_{drift_factor}
    {
    }

    /// Called for each owner id whose release is written. Not if only the wait queue is left: a question was refused, so
    /// that its owner id has no key there, but may be that of a lease.
    std::function<void(std::string_view owner_id)> on_release;

    /// A new connection to a master.
    void on_connect(std::size_t master) { here_[master] = {}; }
    /// A push is on its way to the client.
    void on_push(std::size_t master, const resp::reply& push);
    /// A command is on its way. Fails for one that may not be sent, or not any more.
    written on_command(std::size_t master, const command& words, clock::time_point now);
    /// A command has its answer.
    void on_answer(std::size_t master, const written& to, const resp::reply& reply);
    /// A reply while a request of the subscription waits for its end.
    part_of_request on_request_reply(std::size_t master, const resp::reply& reply);
    /// The client has read all that was sent.
    void on_idle(std::size_t master) noexcept { here_[master].was_proven = here_[master].proven; }
    /// A lease with this owner id was handed out.
    void on_lease(std::string_view owner_id);

    /// Until when a lease may be said to be valid at most.
    clock::time_point provable(std::string_view owner_id) const;
    /// How many masters confirmed an extension that was sent since then.
    std::size_t extended_since(std::string_view owner_id, clock::time_point when) const;
    /// How many masters answered a release with a number.
    std::size_t released(std::string_view owner_id) const;
    /// A master that got a SET and never a release after it; `masters` if there is none.
    std::size_t still_owed() const;
    /// How many more pushes than a connection may accept were sent to the client; 0 if there were not so many.
    std::size_t too_many_pushes(std::size_t master) const;
    /// A client in the wait queue of a master to which the connection is the one on which it was entered; empty if
    /// there is none.
    std::string still_queued(std::size_t master) const;
    /// The channel of the manager; another one before it is known.
    std::string channel() const { return "redlock:" + manager_id_; }
    std::size_t masters() const noexcept { return masters_; }
    std::size_t quorum() const noexcept { return masters_ / 2 + 1; }

  private:
    /// Of one owner id at one master.
    struct share
    {
        int sets = 0;             // SETs and questions that were written, without those that can't have run.
        bool release = false;     // A release was written.
        bool left = false;        // Only the wait queue was left, because no key can be there.
        bool gone = false;        // A release was answered with a number.
        clock::time_point good{}; // Until when its answers carry the lease.
        clock::time_point extended{}; // When the last extension was written that it confirmed.
    };
    /// Of the present connection to one master.
    struct connection_facts
    {
        bool requested =
            false; // The subscription: the reply to the last command of a request isn't there yet.
        std::size_t replies = 0;     // To that request.
        bool refused = false;        // For good, by one of them.
        bool received = false;       // The last of them says that a message of ours had a receiver.
        bool confirmed = false;      // The subscription, by a push.
        bool proven = false;         // The client may count on messages.
        bool was_proven = false;     // What the client knew when it was idle last.
        std::size_t unsolicited = 0; // Pushes that nobody can have waited for.
        std::map<std::string, std::string>
            queued{}; // Clients that may be in a queue: the owner id of the last command that entered each.
    };
    struct story
    {
        bool handed_out = false;
        std::array<share, max_fuzz_masters> at{};
    };

    const story& story_of(std::string_view owner_id) const;
    written read(const command& words);
    void read_script(const command& words, written& result);
    /// Checks a member of the wait queue, and returns its number.
    std::uint64_t read_member(std::string_view member);
    void read_manager_id(std::string_view id);
    void check_queue_command(std::size_t master, const command& words, const written& result);
    void note_ask(std::size_t master, const written& to, const resp::reply& reply);
    void check_kill(std::size_t master, const command& words) const;

    std::size_t masters_;
    double drift_factor_;
    std::map<std::string, story, std::less<>> stories_;
    std::string manager_id_{};
    std::array<connection_facts, max_fuzz_masters> here_{};
    std::array<std::set<std::string>, max_fuzz_masters>
        told_ids_; // The client ids that a master said were ours.
};

} // namespace redlock::test
