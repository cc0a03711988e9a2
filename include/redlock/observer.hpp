// SPDX-License-Identifier: BSL-1.0
// The events of a manager, for logs and metrics.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/incarnation.hpp>
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

/// A master was connected and is ready for commands.
struct master_up
{
    std::size_t index;  ///< Its index in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    std::string server; ///< Its run id, escaped and truncated; empty if INFO is forbidden.
};

/// A master was disconnected or couldn't be connected. Reported once per outage and reason, also during a shutdown, but
/// not for the connections that the manager closes itself.
struct master_down
{
    std::size_t index;  ///< Its index in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    error_code reason;  ///< The reason.
    std::string detail; ///< The server's message, escaped; often empty.
};

/// A configuration or clock problem of a master that weakens locking. The master votes nevertheless.
enum class risk : std::uint8_t
{
    eviction, ///< The eviction policy may delete locks when the memory is full.
    /// The clock was set, or its drift exceeds `config::drift_factor`, so that keys expire too early or too late. An
    /// observer is also told if TIME is forbidden; in an examination, the round trips are 0 then.
    clock,
    no_identity, ///< INFO is forbidden: duplicate servers and restarts aren't detected.
    /// CLIENT KILL or CLIENT ID is forbidden: a SET on a broken connection may leave a key for a ttl.
    cannot_kill_stale_connections,
    outdated, ///< The version no longer receives fixes, and isn't tested with this library.
    /// A release was refused permanently, or DEL is forbidden, so that keys stay until their ttl ends; or the key of a
    /// release isn't a lock's, but has another type.
    release_refused,
    /// Waiting clients are woken late or queue elsewhere, because it speaks RESP2, or refuses the queue's channel, keys
    /// or scripts.
    limited_queue,
    /// Guarded mode: this manager can't put the master into quarantine, or arm it, because the server refuses a command, or
    /// may evict keys. Until another client arms it, it doesn't vote.
    arming_refused
};

/// Returns the risk as words for messages, such as "no identity". Thread-safe.
REDLOCK_API std::string_view to_string(risk value) noexcept;

/// A master has a configuration or clock problem that weakens locking. Reported once per connection and risk. A clock
/// that was set is reported each time, a refused release once per kind of error, and a limited queue once more when a question
/// is refused. If a master has refused a command of the queue at the connect, what it refuses later is reported as well.
struct master_warning
{
    std::size_t index;  ///< Its index in `config::masters`.
    std::string name;   ///< Its address, without credentials.
    redlock::risk what; ///< The kind of problem.
    std::string detail; ///< What was observed, escaped, such as "maxmemory-policy is volatile-lru".
};

/// Guarded mode: a master doesn't vote for a while, because it may have forgotten keys. Sent when this manager first sees the
/// quarantine, whoever has begun it.
struct master_quarantined
{
    std::size_t index;      ///< Its index in `config::masters`.
    std::string name;       ///< Its address, without credentials.
    incarnation_end why;    ///< Why it may have forgotten keys.
    clock::time_point ends; ///< When this manager tries to arm it. Another one may do so earlier or later.
};

/// Guarded mode: a master votes again after a quarantine.
struct master_armed
{
    std::size_t index;       ///< Its index in `config::masters`.
    std::string name;        ///< Its address, without credentials.
    std::string incarnation; ///< 16 hexadecimal digits, different for each incarnation.
};

/// A round of an acquire, an extension or a release (`report.operation`) was decided. Sent once per round, for success
/// and failure.
///
/// The event is sent as soon as the result is known: for a lost round at its node timeout at the latest (at the second
/// one, if a token had to be raised, or a resource with two queues is released), which may be after the next round has
/// begun. Later votes aren't included. A failed extension is reported before the `lease_lost` that it causes. A round
/// that is abandoned undecided, by cancellation or because a release overtook an extension, is not reported.
struct round_decided
{
    std::string resource;
    redlock::report report;
    std::string owner_id; ///< The owner id of the attempt or lease.
};

/// An acquire waits in the queue of its resource. Sent when the queue master has entered it, and when a later answer of
/// the queue master shows another position.
struct acquire_queued
{
    std::string resource;
    queue_position position;
    std::string queue_master; ///< The address of the queue master, without credentials.
};

/// A lease was extended. `valid_until` is its new value.
struct lease_extended
{
    std::string resource;
    std::string owner_id;
    clock::time_point valid_until;
};

/// A lease was lost: it isn't known to be valid any more. Not sent for a lease that was released first.
struct lease_lost
{
    std::string resource;
    std::string owner_id;
    error_code reason;
};

/// The release of a lease was confirmed by a quorum (`result` is empty), or wasn't in time (`errc::unconfirmed`). Sent
/// after the `round_decided` of the same round.
struct lease_released
{
    std::string resource;
    std::string owner_id;
    error_code result;
};

/// Events were dropped because `observer::max_waiting` events were pending. Delivered once no other event is pending.
struct events_dropped
{
    std::size_t count;
};

using event = std::variant<
    master_up, master_down, master_warning, round_decided, acquire_queued, lease_extended, lease_lost,
    lease_released, events_dropped, master_quarantined, master_armed>;

/// The receiver of a manager's events. If `on_event` is empty, no events are created.
struct observer
{
    /// Called on `executor` for each event, in order and never concurrently. Must not throw: an exception terminates
    /// the program. May call the manager; no lock is held during the call. Pending events are still delivered after
    /// the manager was destroyed: what the function refers to must outlive the threads that run `executor`.
    std::function<void(const event&)> on_event{};
    /// The executor of `on_event`. Empty: the manager's, where the function delays the manager's replies and extensions. A
    /// function that writes to a file, a terminal or a network needs a separate thread, for example an
    /// `asio::thread_pool`. Its context must outlive all background work of the manager, which includes the releases of
    /// leases that were destroyed.
    boost::asio::any_io_executor executor{};
    /// The maximum number of pending events, 1 or more. Further events are counted and dropped.
    std::size_t max_waiting = 1024;
};

} // namespace redlock
