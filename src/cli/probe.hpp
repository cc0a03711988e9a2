// SPDX-License-Identifier: BSL-1.0
// A lock of the doctor's own on one master: acquired, looked at, extended and released, as locks really are.
#pragma once

#include "cli/arguments.hpp"

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

/// What is done with the probe's lock, in this order.
enum class probe_step : std::uint8_t
{
    acquire, ///< SET.
    inspect, ///< EVAL of a script that calls GET and PTTL.
    extend,  ///< EVALSHA of a script that calls GET, PTTL and PEXPIRE.
    release  ///< EVALSHA of a script that calls GET and DEL.
};

inline constexpr std::size_t probe_steps = 4;

/// How one step went.
struct probe_outcome
{
    /// False for a step that a failure before it left no lock for.
    bool tried = false;
    /// The key that it needed wasn't there, or was another client's.
    bool key_gone = false;
    /// Why the master didn't do it; empty if it did.
    error_code reason;
    /// What the server said to it, escaped; often empty.
    std::string detail;
    /// From sending to the answer; the fastest of `tries`. Empty where nothing is measured: an inspection, a failure.
    std::optional<std::chrono::nanoseconds> took;

    bool succeeded() const noexcept { return tried && !reason && !key_gone; }
};

/// What became of the lock.
struct probe
{
    std::array<probe_outcome, probe_steps> steps;
    int tries = 0;

    const probe_outcome& at(probe_step which) const { return steps.at(static_cast<std::size_t>(which)); }
    probe_outcome& at(probe_step which) { return steps.at(static_cast<std::size_t>(which)); }
    bool succeeded() const noexcept;
    /// The slowest of the steps that were measured; 0 if none was.
    std::chrono::nanoseconds slowest() const noexcept;
};

/// How long a master has for each step. Far above any node timeout in use, so that a slow answer is measured.
inline constexpr std::chrono::milliseconds probe_timeout{2000};

/// From here on a step is tried again, three times in all: once may be chance.
inline constexpr std::chrono::milliseconds probe_is_slow{25};

/// Probes the only master of `options`, on a random resource. What it leaves on a master that refuses the release
/// expires within five seconds. Doesn't throw, except for options that can't be used.
boost::asio::awaitable<probe> probe_master(config options);

/// Whether the only master of `options` lets this client in and answers it a question about a lock. For options without
/// user and password: whether it serves clients that don't log in.
boost::asio::awaitable<bool> answers_inspection(config options);

} // namespace redlock::cli
