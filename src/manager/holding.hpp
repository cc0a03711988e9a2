// SPDX-License-Identifier: BSL-1.0
// What a lease stands for: a claim that won, how long it is valid, and whether it is still held.
#pragma once

#include <redlock/clock.hpp>

#include "env/environment.hpp"
#include "net/claim.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace redlock::manager
{

class expiry_watch;
class gate;
class keeper;
class round;

/// Where a holding stands. It only moves forward.
enum class holding_state : std::uint8_t
{
    asked,   // Its round isn't decided, or was lost: nobody has a lease of it.
    held,    // A lease of it was handed out.
    lost,    // As held, but it can't be shown to be valid any more, or not for long enough.
    released // It was given back, or is being given back.
};

/// A place in the line of those who want to extend the same lease.
struct place_in_line : env::unlinking_hook
{
    explicit place_in_line(env::wake& waiter) noexcept : waiting{waiter} {}
    env::wake& waiting;
};

/// An extension in flight whose result the observer is still to be notified of.
struct unreported_extension : env::unlinking_hook
{
    explicit unreported_extension(round& votes) noexcept : of{votes} {}
    round& of;
};

/// In one of the gate's lists: handed back, or unused.
using gate_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<struct gate_lists>>;
/// In the manager's list of leases.
using lease_hook = boost::intrusive::list_base_hook<
    boost::intrusive::tag<struct lease_list>, boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// A claim with a lease. The state and the validity can be read on any thread; everything else is the
/// strand's.
class holding final : public net::claim, public gate_hook, public lease_hook
{
    // First, so that they are close together: what everybody asks for.
    std::atomic<holding_state> state_{holding_state::asked};
    std::atomic<bool> release_asked_{false};
    std::atomic<clock::rep> valid_until_{0};
    clock::time_point confirmed_{};

  public:
    holding();
    ~holding() override;

    /// Makes it fresh: a new owner id for a resource.
    void assign(
        std::shared_ptr<manager::gate> way, const env::environment& outside, std::string_view prefix,
        std::string_view resource);

    std::string_view resource() const noexcept { return std::string_view{key_}.substr(prefix_length_); }
    const std::shared_ptr<manager::gate>& way() const noexcept { return way_; }

    holding_state state() const noexcept { return state_.load(std::memory_order_acquire); }
    clock::time_point valid_until() const noexcept
    {
        return clock::time_point{clock::duration{valid_until_.load(std::memory_order_acquire)}};
    }

    /// Its round was won.
    void hold(clock::time_point until, clock::time_point confirmed) noexcept;
    /// An extension that was sent at `sent` was confirmed. Never shortens.
    void extend(clock::time_point until, clock::time_point sent) noexcept;
    /// Ahead of its end: until then nobody else can have it. False if there was nothing to lose.
    bool lose(error_code why) noexcept;
    /// The masters said that the key isn't ours: the end is now. False if there was nothing to lose.
    bool disown() noexcept;
    /// False if it isn't held.
    bool begin_release() noexcept;

    /// A release of its own is on its way to the strand: the lease that goes meanwhile has nothing to hand
    /// back.
    void ask_release() noexcept { release_asked_.store(true, std::memory_order_relaxed); }
    bool release_asked() const noexcept { return release_asked_.load(std::memory_order_relaxed); }

    /// Of a lost one.
    error_code lost_because() const noexcept { return lost_because_; }
    /// Why it can't be extended; empty if it can.
    error_code why_not_extendable(clock::time_point now) const noexcept;
    /// When the last attempt was sent that a quorum confirmed.
    clock::time_point confirmed() const noexcept { return confirmed_; }

    std::chrono::milliseconds ttl{0}; // The last one that was asked for and, once it is held, granted.
    env::unlinking_list<place_in_line> extending{}; // The first one has its turn.
    env::unlinking_list<place_in_line> watching{};  // Those who wait for the loss, or for the release.
    env::unlinking_list<unreported_extension> unreported{}; // Only with an observer.
    std::unique_ptr<keeper> kept;                           // Null unless it is extended in the background.
    std::unique_ptr<expiry_watch> expiry; // Null unless it isn't, and an observer wants to know its end.

  private:
    void recycle() noexcept override;

    std::shared_ptr<manager::gate> way_;
    std::size_t prefix_length_ = 0;
    error_code lost_because_;
};

} // namespace redlock::manager
