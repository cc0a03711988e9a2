// SPDX-License-Identifier: BSL-1.0
// The interface of all measured clients, and what they measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// Returns the resource of one worker. Each kind of client has its own resources, so that it doesn't meet keys
/// which another client's minority hasn't deleted. All names have the same length and, without the prefix, fit into
/// the small buffer of a std::string.
std::string resource_of(std::string_view kind, std::size_t worker);
inline constexpr std::string_view key_prefix = "lock:";
inline constexpr std::chrono::milliseconds ttl{10'000};

/// The end of a run: the number of pairs or the time limit, whichever comes first.
struct workload
{
    std::size_t pairs; // Of acquire and release, by all workers together.
    std::chrono::nanoseconds time_limit = std::chrono::minutes{5};
    std::size_t workers = 1; // They run concurrently, each with its own resource.
};

/// The calls of this thread that wait, transfer data, set timers or draw random numbers. Reading a clock makes no
/// system call.
struct system_calls
{
    std::uint64_t count = 0;
    std::uint64_t sent = 0;     // Bytes sent by sockets.
    std::uint64_t received = 0; // Bytes received by sockets.

    friend system_calls operator-(const system_calls& one, const system_calls& other)
    {
        return {one.count - other.count, one.sent - other.sent, one.received - other.received};
    }
};

/// Counts those of a client, including those of Asio and OpenSSL.
system_calls system_calls_of_this_thread() noexcept;

/// What a client did in one run.
struct run_record
{
    std::vector<std::chrono::nanoseconds> acquires; // The latency of each acquire.
    std::vector<std::chrono::nanoseconds> pairs;    // The latency of each acquire and release.
    std::chrono::nanoseconds duration{0};           // Of the whole run.
    std::chrono::nanoseconds cpu{0};                // User and system time of the client.
    std::chrono::nanoseconds server_cpu{0};         // User and system time of all masters.
    std::uint64_t allocations = 0;                  // Heap allocations of the client.
    std::int64_t heap_peak = 0;                     // The peak of the thread's heap in bytes.
    system_calls calls;                             // System calls of the client.
    std::uint64_t unconfirmed = 0; // Releases that failed or that no majority confirmed in time.
    std::uint64_t failed = 0;      // Acquires that failed; they have no entry in `acquires`.
};

/// Returns the user and system time that a CPU clock shows.
std::chrono::nanoseconds cpu_time(clockid_t of);
std::chrono::nanoseconds cpu_of_this_thread();

/// Measures one run. All clients call it at the same points.
class stopwatch
{
  public:
    /// Allocates memory for all samples. Counting begins with the first pair.
    stopwatch(run_record& into, const workload& load);

    using clock = std::chrono::steady_clock;

    /// Ends the worker's previous pair, which began at `start`, unless that is the epoch. Returns false if no pairs
    /// remain, otherwise begins the next one and sets `start`.
    bool begin_pair(clock::time_point& start);
    void end_acquire(clock::time_point start);
    void finish();

  private:
    void begin_counting();

    run_record& into_;
    workload load_;
    clock::time_point began_{};
    std::size_t begun_ = 0;
    std::chrono::nanoseconds cpu_before_{};
    std::uint64_t allocations_before_ = 0;
    std::int64_t heap_of_samples_ = 0;
    system_calls calls_before_;
};

/// A client with its connections. It works on the calling thread, the only one that is measured.
class client
{
  public:
    client() = default;
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    virtual ~client() = default;

    /// Acquires and releases until the load is done. On return, every master that is up has answered all commands.
    virtual run_record run(const workload& load) = 0;
};

} // namespace redlock::bench
