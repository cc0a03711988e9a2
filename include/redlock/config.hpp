// SPDX-License-Identifier: BSL-1.0
// The options of a lock manager.
#pragma once

#include <redlock/master.hpp>
#include <redlock/observer.hpp>
#include <redlock/tls.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock
{

namespace detail
{

/// As the first member of an aggregate, this prevents initialisation by position.
struct by_name
{
    explicit by_name() = default;
};

} // namespace detail

/// The order in which the clients of a resource are served. All clients of a resource should use the same one. Mixing
/// them is safe.
enum class order : std::uint8_t
{
    /// First come, first served among the clients that wait. A client that has just arrived may overtake them in the
    /// moment between a release and the next grant.
    waiting,
    /// No client overtakes one that waits. Costs a script instead of a SET at one master per acquire, and a look for
    /// waiting clients at each master per release.
    strict
};

/// The options of guarded mode.
struct guarded_options
{
    [[no_unique_address]] detail::by_name by_name = detail::by_name{};

    /// The name of the group, 16 hexadecimal digits. Empty: the group that the first quorum of masters shows.
    std::string group{};
};

/// The options of a `lock_manager`, given by name: `{.masters = urls, .node_timeout = 20ms}`.
///
/// Durations are whole milliseconds from 1 ms to 1 h. The constructor of the manager checks all options, and throws
/// `system_error` with `errc::invalid_config`, or with `errc::invalid_master` if two masters are the same server.
struct config
{
    [[no_unique_address]] detail::by_name by_name = detail::by_name{};

    /// The N independent masters: 1 to 31, without duplicates.
    master_list masters{};
    /// The prefix of all keys: a resource's key is `key_prefix` followed by its name. 0 to 1024 bytes, not
    /// beginning with `redlock-queue:`, without `:redlock-guard`, `:redlock-fence` and `:redlock-members`.
    std::string key_prefix = "lock:";
    /// The name of the connections in the servers' CLIENT LIST: 0 to 64 printable bytes without spaces.
    std::string client_name = "redlock";

    /// TLS options for `rediss://` masters. Must be left empty if there are none.
    tls_options tls{};

    /// The time that each master has to answer in a round. Must be shorter than the ttl. Empty: min(50 ms, ttl / 10),
    /// and at least 1 ms.
    std::optional<std::chrono::milliseconds> node_timeout{};
    /// The rate at which clocks may drift apart, 0 to 0.5. A ttl is shortened by drift = ttl × `drift_factor` + 2 ms.
    double drift_factor = 0.01;

    /// The time limit for a connection attempt, including name resolution and handshake. However long the process is
    /// suspended, or its thread busy, each such time counts as an eighth of it at most. The first round of a manager waits
    /// for a quorum of masters, but not for those whose first attempt has failed. In guarded mode the first look at a
    /// master is part of its first attempt, with `response_timeout`.
    std::chrono::milliseconds connect_timeout{1000};
    /// The upper bound of the first delay before a reconnect. The delay is random; its bound doubles with each failure,
    /// up to `reconnect_delay_max`.
    std::chrono::milliseconds reconnect_delay_min{10};
    std::chrono::milliseconds reconnect_delay_max{500}; ///< The maximum of that bound.
    /// The interval at which each connected master is sent TIME, with or without other traffic. The reply shows that
    /// the connection is alive, and whether the server's clock was set. In guarded mode it is 1000 ms at most.
    std::chrono::milliseconds probe_interval{1000};
    /// The time without any reply after which a connection with a pending command is closed.
    std::chrono::milliseconds response_timeout{1000};

    /// The order in which the clients of a resource are served.
    redlock::order order = redlock::order::waiting;
    /// The upper bound of the first delay between two rounds of an acquire that can't wait in the queue of the resource,
    /// because no master accepts it. The delay is random; its bound doubles with each lost round, up to
    /// `retry_delay_max`.
    std::chrono::milliseconds retry_delay_min{10};
    std::chrono::milliseconds retry_delay_max{500}; ///< The maximum of that bound.

    /// The maximum number of outstanding keys per master, 1 or more: owner ids whose SET was sent and whose release
    /// isn't confirmed, held leases included. It bounds all queues of a connection. At the limit no SET is sent: the
    /// master's vote is `unsent`, with `master_errc::too_many_outstanding_keys`.
    std::size_t max_outstanding_keys = 131'072;
    /// The maximum size of the write queue per master, 64 KiB or more. At the limit commands aren't sent: the
    /// master's vote is `unsent`, with `master_errc::write_queue_full`, and releases are deferred.
    std::size_t max_write_queue_bytes = std::size_t{16} << 20;
    /// The maximum number of concurrent operations, 1 or more. At the limit `async_acquire` and its variants,
    /// `async_extend`, `async_inspect` and `async_examine` fail with `errc::too_many_operations` and send nothing.
    /// Releases and waits for a loss are always accepted.
    std::size_t max_operations = 262'144;
    /// The maximum number of acquires that wait, 1 or more. At the limit an acquire whose round was lost fails with
    /// `errc::too_many_operations` instead of waiting.
    std::size_t max_waiting_acquires = 65'536;

    /// Guarded mode, for masters that were provisioned: a master that may have forgotten keys doesn't vote, and each lease
    /// has a fencing token. Empty: plain mode.
    std::optional<guarded_options> guarded{};

    /// Receives the events of the manager.
    redlock::observer observer{};
};

} // namespace redlock
