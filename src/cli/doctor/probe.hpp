// SPDX-License-Identifier: BSL-1.0
// The doctor's probe: a lock that is acquired, inspected, extended and released on one master, and waited for.
#pragma once

#include "cli/common/arguments.hpp"

#include <redlock/config.hpp>
#include <redlock/error.hpp>

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace redlock::cli
{

/// The steps of a probe, in their order.
enum class probe_step : std::uint8_t
{
    acquire, ///< SET.
    inspect, ///< EVAL of a script that calls GET and PTTL.
    extend,  ///< EVALSHA of a script that calls GET, PTTL and PEXPIRE.
    release  ///< EVALSHA of a script that calls GET and DEL.
};

inline constexpr std::size_t probe_steps = 4;

/// The outcome of one step.
struct probe_outcome
{
    /// False if the step needs a lock and none was acquired.
    bool tried = false;
    /// The key was missing, or had another owner.
    bool key_gone = false;
    /// The master's error; empty on success.
    error_code reason;
    /// The text of the server's error, escaped; may be empty.
    std::string detail;
    /// The time from sending to the answer, the fastest of `tries`. Empty for an inspection and for a failure.
    std::optional<std::chrono::nanoseconds> took;

    bool succeeded() const noexcept { return tried && !reason && !key_gone; }
};

/// The result of a probe.
struct probe
{
    std::array<probe_outcome, probe_steps> steps;
    /// What the master refuses while a client waits for a lock. Empty if it refuses nothing, and if a step failed.
    std::optional<std::string> queue_refusal;
    int tries = 0;

    const probe_outcome& at(probe_step which) const { return steps.at(static_cast<std::size_t>(which)); }
    probe_outcome& at(probe_step which) { return steps.at(static_cast<std::size_t>(which)); }
    /// Adds a try: keeps the faster time of each step; a failure replaces a time.
    void add(const probe& once);
    bool succeeded() const noexcept;
    /// Returns the time of the slowest measured step; 0 if none was measured.
    std::chrono::nanoseconds slowest() const noexcept;
};

/// The time limit of each step, far above any node timeout in use, so that slow answers are measured.
inline constexpr std::chrono::milliseconds probe_timeout{2000};

/// A probe with a step as slow as this is repeated, up to three tries in all, since one slow answer may be chance.
inline constexpr std::chrono::milliseconds probe_is_slow{25};

/// Probes the only master of `options` with random resources. A key that the master refuses to release expires within
/// five seconds, and a queue within ten. With `tries_queue`, a client also waits for a lock. Throws if the options can't be
/// used, or the system refuses a timer.
boost::asio::awaitable<probe> probe_master(config options, bool tries_queue);

/// Returns true if the only master of `options` answers an inspection. If `options` have neither user nor password, the
/// master then serves clients that don't authenticate.
boost::asio::awaitable<bool> answers_inspection(config options);

} // namespace redlock::cli
