// SPDX-License-Identifier: BSL-1.0
// What a manager tells of itself while it works: for a log, or for metrics.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/report.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace redlock
{

/// A master can be asked from now on.
struct master_up
{
    std::size_t index;  ///< Its place in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    std::string server; ///< Its run id, escaped and cut off if it is none; empty if it doesn't tell.
};

/// A master can't be asked any more, or couldn't be connected to. Said once per outage and reason.
struct master_down
{
    std::size_t index;  ///< Its place in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    error_code reason;  ///< Why.
    std::string detail; ///< What the server said, escaped; often empty.
};

/// What makes a master less than it should be, though it may vote.
enum class risk : std::uint8_t
{
    eviction, ///< Its eviction policy lets it throw locks away when its memory is full.
    /// Its clock was set, or runs at another speed than `drift_factor` allows: keys lapse early or late. Or it forbids
    /// TIME, so that nobody knows.
    clock,
    no_identity, ///< It forbids INFO: whether it is given twice, or was restarted, can't be known.
    no_fence, ///< It forbids CLIENT KILL or CLIENT ID: a SET in a connection that broke can leave a key for a ttl.
    outdated, ///< Its version gets no corrections any more, and was never tried with this library.
    /// It refuses releases permanently: keys stay there until their ttl ends. Or a key is not a lock, but of another type.
    release_refused
};

/// The words for a risk. Thread-safe.
REDLOCK_API std::string_view to_string(risk value) noexcept;

/// A master is less than it should be. Said once for each connection and risk; each time for a clock that was set,
/// and once for each kind of error that refuses releases.
struct master_at_risk
{
    std::size_t index;  ///< Its place in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    redlock::risk what; ///< Of what.
    std::string detail; ///< What was seen, escaped: "maxmemory-policy is volatile-lru".
};

/// A round of an acquire, an extension or a release was decided; `report.operation` says which. Sent once for each round, with
/// success or failure, as soon as the result is known: of a lost round at its node timeout at the latest, which may be
/// after the next one has begun. Answers that come later are not in it. An extension that fails is reported before the
/// `lease_lost` that it leads to. A round that is given up undecided (cancelled, or an extension overtaken by the release)
/// is not reported.
struct round_decided
{
    std::string resource;
    redlock::report report;
    std::string owner_id; ///< Of the attempt, or of the lease.
};

/// A lease was extended; `valid_until` is what now holds.
struct lease_extended
{
    std::string resource;
    std::string owner_id;
    clock::time_point valid_until;
};

/// A lease can no longer be shown to be valid, kept or not. Not sent for one that is released before.
struct lease_lost
{
    std::string resource;
    std::string owner_id;
    error_code reason;
};

/// A lease was released, and a quorum has confirmed it (`result` is empty) or hasn't within the node timeout
/// (`errc::unconfirmed`). The round's report precedes it.
struct lease_released
{
    std::string resource;
    std::string owner_id;
    error_code result;
};

/// Events were thrown away because the observer didn't keep up (`observer::max_waiting`).
struct events_dropped
{
    std::size_t count;
};

using event = std::variant<
    master_up, master_down, master_at_risk, round_decided, lease_extended, lease_lost, lease_released,
    events_dropped>;

/// Where events go. Without `on_event` no event is even made.
struct observer
{
    /// Called for one event after the other, in their order, on `executor`. It must not throw: that ends the
    /// program, as with every thread's uncaught exception. It may call into the manager, whose lock it never
    /// holds.
    std::function<void(const event&)> on_event{};
    /// Where it is called; empty for the manager's own executor. Its context has to stay for as long as anything of the
    /// manager runs: a lease that goes is still released in the background.
    boost::asio::any_io_executor executor{};
    /// The most events that wait for `on_event`; further ones are counted and dropped. 1 or more.
    std::size_t max_waiting = 1024;
};

} // namespace redlock
