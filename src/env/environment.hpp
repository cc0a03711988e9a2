// SPDX-License-Identifier: BSL-1.0
// The seam: everything that isn't deterministic is reached through here. The simulation replaces it.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include "env/scheduler.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace redlock::env
{

/// One input or output operation in flight. It belongs to whoever waits for it and outlives the operation.
struct io_operation
{
    explicit io_operation(wake& waiting) noexcept : waiter{waiting} {}

    void start() noexcept { pending = true; }
    /// Called by the stream, once, on the strand.
    void finish(error_code result, std::size_t count) noexcept
    {
        pending = false;
        error = result;
        bytes = count;
        waiter.notify();
    }

    wake& waiter;
    error_code error;
    std::size_t bytes = 0;
    bool pending = false;
};

/// A byte stream to one master. All calls are made on the strand; each operation finishes in a later turn.
class stream
{
  public:
    stream() = default;
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    virtual ~stream() = default;

    /// Resolves the name anew and connects, and shakes hands where that belongs to the stream. Once. Whoever waits
    /// closes it at `until`; by then every address of the name has had its share of the time.
    virtual void connect(io_operation& operation, clock::time_point until) = 0;
    /// Reads at least one byte into `buffer`; an orderly end is `asio::error::eof`.
    virtual void read_some(std::span<char> buffer, io_operation& operation) = 0;
    /// Writes as much of `bytes` as it can at once, and returns how much. What goes wrong the next `write` tells.
    virtual std::size_t write_now(std::span<const char> /*bytes*/) noexcept { return 0; }
    /// Writes all of `bytes`, which stay where they are until then.
    virtual void write(std::span<const char> bytes, io_operation& operation) = 0;
    /// What the last error doesn't say: what is wrong with a certificate. Often empty.
    virtual std::string_view complaint() const noexcept { return {}; }
    /// What is in flight finishes soon, with `operation_aborted` if it wasn't done. May be called again.
    virtual void close() noexcept = 0;
};

/// A timer for one point in time: the next deadline of a scheduler.
class alarm
{
  public:
    alarm() = default;
    alarm(const alarm&) = delete;
    alarm& operator=(const alarm&) = delete;
    virtual ~alarm() = default;

    /// Calls `scheduler::on_alarm` in a turn of its own at or after `at`. Replaces the last call.
    virtual void set(clock::time_point at) = 0;
    /// For good: what is in flight ends without a call.
    virtual void close() noexcept = 0;
};

/// Time, chance and the network.
class environment
{
  public:
    environment() = default;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    virtual ~environment() = default;

    /// Thread-safe.
    virtual clock::time_point now() const noexcept = 0;
    /// Bytes that nobody can guess. Thread-safe.
    virtual void random(std::span<std::byte> out) const noexcept = 0;
    virtual std::unique_ptr<stream> make_stream(scheduler& strand, const master& to) const = 0;
    virtual std::unique_ptr<alarm> make_alarm(scheduler& strand) const = 0;
};

} // namespace redlock::env
