// SPDX-License-Identifier: BSL-1.0
// The seam: the interface to everything that isn't deterministic. The simulation has its own implementation.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include "runtime/scheduler.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace redlock::runtime
{

/// The state of one I/O operation. Owned by the object that waits for it, and must outlive the operation.
struct io_operation
{
    explicit io_operation(async_event& waiting) noexcept : waiter{waiting} {}

    void start() noexcept { pending = true; }
    /// Called by the stream, once, on the strand.
    void finish(error_code result, std::size_t count) noexcept
    {
        pending = false;
        error = result;
        bytes = count;
        waiter.notify();
    }

    async_event& waiter;
    error_code error;
    std::size_t bytes = 0;
    bool pending = false;
};

/// A byte stream to one master. All calls are made on the strand. Each operation finishes in a later step.
class stream
{
  public:
    stream() = default;
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    virtual ~stream() = default;

    /// Resolves the name and connects, including the TLS handshake. Called once. The time until `until` is divided
    /// among the addresses of the name. The caller closes the stream at `until`, or later if the process
    /// was suspended.
    virtual void connect(io_operation& operation, clock::time_point until) = 0;
    /// Chooses with which of the addresses of a name `connect` begins: with this one, counted from 0 and beyond their number from
    /// the first one again. Called before it.
    virtual void begin_with(std::size_t /*address*/) noexcept {}
    /// Reads at least one byte into `buffer`. An orderly end of the stream is `asio::error::eof`.
    virtual void read_some(std::span<char> buffer, io_operation& operation) = 0;
    /// Writes as much of `bytes` as possible without waiting, and returns the number of bytes written. An error is
    /// reported by the next `write`.
    virtual std::size_t write_now(std::span<const char> /*bytes*/) noexcept { return 0; }
    /// Writes all of `bytes`, which must stay valid until the operation has finished.
    virtual void write(std::span<const char> bytes, io_operation& operation) = 0;
    /// Returns details of the last error, such as what is wrong with a certificate. Often empty.
    virtual std::string_view complaint() const noexcept { return {}; }
    /// Makes the operations in flight finish soon, with `operation_aborted` unless they succeeded. May be called again.
    virtual void close() noexcept = 0;
};

/// A timer for a single point in time: the next deadline of a scheduler.
class alarm
{
  public:
    alarm() = default;
    alarm(const alarm&) = delete;
    alarm& operator=(const alarm&) = delete;
    virtual ~alarm() = default;

    /// Calls `scheduler::on_alarm` in a separate step at or after `at`. Replaces the previous time.
    virtual void set(clock::time_point at) = 0;
    /// Stops the alarm permanently. There is no call after this.
    virtual void close() noexcept = 0;
};

/// The clock, random numbers and the network.
class environment
{
  public:
    environment() = default;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    virtual ~environment() = default;

    /// Thread-safe.
    virtual clock::time_point now() const noexcept = 0;
    /// Fills `out` with unpredictable bytes. Thread-safe.
    virtual void random(std::span<std::byte> out) const noexcept = 0;
    virtual std::unique_ptr<stream> make_stream(scheduler& strand, const master& to) const = 0;
    virtual std::unique_ptr<alarm> make_alarm(scheduler& strand) const = 0;
};

} // namespace redlock::runtime
