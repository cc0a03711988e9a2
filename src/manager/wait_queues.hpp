// SPDX-License-Identifier: BSL-1.0
// What a manager knows of the wait queues: its waiting clients, the contended resources, and the masters that can't be
// queue masters at present.
#pragma once

#include <redlock/clock.hpp>

#include "core/queue_master.hpp"
#include "net/queue_commands.hpp"
#include "runtime/environment.hpp"
#include "runtime/scheduler.hpp"

#include <boost/intrusive/set.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

class wait_queues;

/// An acquire that waits in the queue of its resource. The number is the same in each of its questions.
class waiter
    : public boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
  public:
    waiter(wait_queues& queues, runtime::async_event& wake_event);
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter();

    std::uint64_t number() const noexcept { return number_; }
    /// It waits at this master from now on, and no message from another one concerns it.
    void wait_at(std::size_t master) noexcept { master_ = master; }
    bool waits_at(std::size_t master) const noexcept { return master_ == master; }
    /// Wakes the acquire because a message has arrived.
    void wake(net::wake_reason why) noexcept
    {
        woken_ = woken_ == net::wake_reason::released ? woken_ : why;
        wake_event_.notify();
    }
    /// Wakes it to look at the state of the connections.
    void reconsider() noexcept { wake_event_.notify(); }
    /// The strongest reason since the last call of `sleep`.
    std::optional<net::wake_reason> woken() const noexcept { return woken_; }
    void sleep() noexcept { woken_.reset(); }

    struct by_number
    {
        using type = std::uint64_t;
        type operator()(const waiter& of) const noexcept { return of.number_; }
    };

  private:
    wait_queues& queues_;
    runtime::async_event& wake_event_;
    std::uint64_t number_;
    std::optional<std::size_t> master_;
    std::optional<net::wake_reason> woken_;
};

/// The wait queues as one manager sees them. All calls are made on the strand.
class wait_queues
{
  public:
    /// For how long a master that gave no answer, or a queue master that was overruled, is passed over.
    static constexpr std::chrono::seconds distrust{1};

    /// The maximum number of resources for which masters are passed over. With more, only the latest ones are.
    static constexpr std::size_t max_overruled = 64;

    explicit wait_queues(std::size_t max_waiting) : max_waiting_{max_waiting} {}

    /// Draws the id of the manager.
    void open(const runtime::environment& outside, std::size_t masters);
    std::string_view manager_id() const noexcept { return manager_id_; }

    /// Returns whether another acquire may wait.
    bool has_room() const noexcept { return waiting_ < max_waiting_; }
    /// Returns whether an acquire of this manager waits, or has waited, with this number.
    bool was_issued(std::uint64_t number) const noexcept { return number != 0 && number <= last_number_; }
    /// Returns the waiter with this number, or null.
    waiter* find(std::uint64_t number) noexcept;

    /// An acquire that has left a queue, or should have: what it sent may be lost with the connection.
    struct departure
    {
        std::uint64_t number = 0;
        std::string resource;
        std::chrono::milliseconds ttl{}; // Of the acquire.
        // The last answer to a message of a master, which counts until then.
        std::size_t answered_at = 0;
        std::uint64_t answered_on = 0; // A connection.
        clock::time_point answered_until{};

        bool was_answered(std::size_t master, std::uint64_t connection, clock::time_point now) const noexcept
        {
            return answered_at == master && answered_on == connection && now < answered_until;
        }
    };
    /// Remembers a departure. An older one may be forgotten.
    void note_departure(std::uint64_t number, std::string_view resource, std::chrono::milliseconds ttl);
    /// Returns the departure of the acquire with this number, or null if it is forgotten.
    departure* find_departure(std::uint64_t number) noexcept;
    /// Makes all waiters look again which master is their queue master.
    void reconsider_all() noexcept;

    /// Records the identity of a connected master.
    void identify(std::size_t master, std::string_view identity) noexcept;
    /// Returns the weight of a master for a resource, by the hash of its key. Never 0.
    std::uint64_t weight(std::size_t master, std::uint64_t key) const noexcept
    {
        return core::queue_weight(identities_[master], key) | 1U;
    }
    /// Returns whether any master is passed over.
    bool doubts(clock::time_point now) const noexcept { return last_doubt_ends_ > now; }
    bool is_passed_over(std::size_t master, std::uint64_t key, clock::time_point now) const noexcept;
    /// The master gave no answer to a question.
    void suspect(std::size_t master, clock::time_point now) noexcept;
    /// The master granted a resource that a quorum of masters has for another client, or refused a question about it.
    void overrule(std::size_t master, std::uint64_t key, clock::time_point now);

    bool any_contended() const noexcept { return contended_ > 0; }
    /// Returns whether other clients were seen to wait for a resource.
    bool is_contended(std::uint64_t key) const noexcept
    {
        return any_contended() && at(key).key == named(key);
    }
    /// Records whether other clients wait for it. It is forgotten only after a second, because clients often return at
    /// once.
    void note(std::uint64_t key, bool others_wait, clock::time_point now) noexcept;
    /// Returns whether a release looks for waiting clients at every master. Those that can't reach the queue master
    /// would otherwise starve, while a client of this manager locks the resource again and again.
    bool looks_everywhere(std::uint64_t key) noexcept
    {
        constexpr std::uint32_t now_and_then = 64;
        return ++releases_ % now_and_then == 0 || is_contended(key);
    }
    /// Records that clients wait at a master which isn't the queue master. `note` was called before.
    void note_second_queue(std::uint64_t key, std::size_t master, clock::time_point now) noexcept;
    /// Returns the master where other clients were seen to wait than those in the queue of the queue master.
    std::optional<std::size_t> second_queue(std::uint64_t key, clock::time_point now) const noexcept;

  private:
    friend class waiter;

    using waiter_set = boost::intrusive::set<
        waiter, boost::intrusive::key_of_value<waiter::by_number>,
        boost::intrusive::constant_time_size<false>>;

    /// A place of a direct-mapped cache of contended resources. A collision is harmless: a resource that is forgotten
    /// costs a lost round, and a mistaken one an unnecessary question.
    struct contended_resource
    {
        std::uint64_t key = 0;
        clock::time_point seen{};
        std::size_t second_queue = 0; // Its master.
        clock::time_point second_seen{};
    };

    struct overruled_master
    {
        std::size_t master;
        std::uint64_t key;
        clock::time_point until;
    };

    /// The number of departures that are remembered, unless more clients have waited at once.
    static constexpr std::size_t min_departures = 1024;

    static std::uint64_t named(std::uint64_t key) noexcept { return key | 1U; }
    contended_resource& at(std::uint64_t key) noexcept { return resources_[key % resources_.size()]; }
    const contended_resource& at(std::uint64_t key) const noexcept
    {
        return resources_[key % resources_.size()];
    }

    /// For how long it is assumed that clients which were seen to wait do so.
    static constexpr std::chrono::seconds moment{1};

    std::string manager_id_;
    std::size_t max_waiting_;
    std::size_t waiting_ = 0;
    std::size_t most_waiting_ = 0;
    std::uint64_t last_number_ = 0;
    waiter_set waiters_;
    std::vector<departure> departures_;            // Direct-mapped, by number.
    std::vector<std::uint64_t> identities_;        // By master.
    std::vector<clock::time_point> suspect_until_; // By master.
    clock::time_point last_doubt_ends_{};
    std::vector<overruled_master> overruled_;
    std::uint32_t releases_ = 0;
    std::size_t contended_ = 0;
    std::array<contended_resource, 256> resources_{};
};

} // namespace redlock::manager
