// SPDX-License-Identifier: BSL-1.0
// The options of a manager.
#pragma once

#include <redlock/master.hpp>
#include <redlock/observer.hpp>
#include <redlock/tls.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace redlock
{

namespace detail
{

/// As the first member of an aggregate: its members are initialised by name only.
struct by_name
{
    explicit by_name() = default;
};

} // namespace detail

/// The options of a manager, which are given by name: `{.masters = urls, .node_timeout = 20ms}`. Durations are whole
/// milliseconds, from 1 ms to an hour.
struct config
{
    [[no_unique_address]] detail::by_name by_name = detail::by_name{};

    /// The N independent masters: 1 to 31, each once.
    master_list masters{};
    /// Put in front of the resource to make the key. At most 1 KiB; may be empty.
    std::string key_prefix = "lock:";
    /// The connections' name in the servers' CLIENT LIST: at most 64 bytes, printable, no spaces; or empty.
    std::string client_name = "redlock";

    /// For masters over TLS (`rediss://`). Not allowed without any.
    tls_options tls{};

    /// How long each master has to answer in a round. Below the ttl. Empty for min(50 ms, ttl / 10), at least
    /// 1 ms.
    std::optional<std::chrono::milliseconds> node_timeout{};
    /// The part of the ttl by which clocks may drift apart in its time. 0 to 0.5.
    double drift_factor = 0.01;

    /// For connecting with handshake, and for how long at most a first round waits for a quorum of masters to be
    /// ready. It doesn't wait for masters that have refused or failed their first attempt.
    std::chrono::milliseconds connect_timeout{1000};
    /// The bound of the first delay before a reconnect; it doubles with each failure. The delay itself is
    /// drawn at random below it.
    std::chrono::milliseconds reconnect_delay_min{10};
    std::chrono::milliseconds reconnect_delay_max{500}; ///< What it doubles up to.
    /// A connection on which nothing was read for so long is asked for a PING.
    std::chrono::milliseconds ping_interval{1000};
    /// A connection that owes an answer, and gave none for so long, is closed.
    std::chrono::milliseconds dead_after{1000};

    /// The same for the delay between two rounds of an acquire. While the master that leads for the resource answers, the
    /// acquire stands in line there meanwhile, and its next round begins with its turn: it pauses for
    /// `retry_delay_max` at most, and for half of that at least unless its turn comes.
    std::chrono::milliseconds retry_delay_min{10};
    std::chrono::milliseconds retry_delay_max{500}; ///< What it doubles up to.

    /// For each master: the most owner ids whose SET was sent and whose release isn't answered yet, held
    /// leases included. It bounds every queue of a connection. At the limit a SET is refused: a vote
    /// `unsent`, with the reason `master_errc::too_many_owed`. 1 or more.
    std::size_t max_owed = 131'072;
    /// For each master: the most bytes of commands that wait to be written to it, 64 KiB or more. At the limit it isn't
    /// asked (a vote `unsent`, with the reason `master_errc::too_many_waiting`), and releases wait for their turn.
    std::size_t max_waiting_bytes = std::size_t{16} << 20;
    /// The most operations at once. A further one that acquires, extends, inspects or examines ends with
    /// `errc::too_many_operations`, unsent; releases and waits for a loss are never refused. 1 or more.
    std::size_t max_operations = 262'144;
    /// Of those, the most acquires that pause between two rounds, since others hold what they want. A further one ends
    /// with `errc::too_many_operations` instead of pausing. 1 or more.
    std::size_t max_waiting_acquires = 65'536;

    /// Where events go.
    redlock::observer observer{};
};

} // namespace redlock
