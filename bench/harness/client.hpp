// SPDX-License-Identifier: BSL-1.0
// What every client under measurement has in common, whatever it is made of.
#pragma once

#include "harness/system_calls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// What a client locks: one resource for each of those who work at the same time. The clients have names of their own, all
/// as long, so that none finds what another one's minority hasn't released yet. Without its prefix a name fits into a
/// string without the heap.
std::string resource_of(std::string_view kind, std::size_t worker);
inline constexpr std::string_view key_prefix = "lock:";
inline constexpr std::chrono::milliseconds ttl{10'000};

/// How long a client works: whichever comes first.
struct workload
{
    std::size_t pairs; // Of acquire and release, of all workers together.
    std::chrono::nanoseconds time_limit = std::chrono::minutes{5};
    std::size_t workers = 1; // So many do it at the same time, each with a resource of its own.
};

/// What a client did in one stretch of work.
struct run_record
{
    std::vector<std::chrono::nanoseconds> acquires; // How long each took.
    std::vector<std::chrono::nanoseconds> pairs;    // Each with its release.
    std::chrono::nanoseconds duration{0};           // All of it.
    std::chrono::nanoseconds cpu{0};                // Of the client, in user and system mode.
    std::chrono::nanoseconds server_cpu{0};         // Of all masters together, likewise.
    std::uint64_t allocations = 0;                  // From the heap, by the client.
    std::int64_t heap_peak = 0;                     // The most bytes that its thread had at once.
    system_calls calls;                             // What was asked of it, by the client.
    std::uint64_t unconfirmed = 0;                  // Releases that no majority confirmed in time, or failed.
    std::uint64_t failed = 0;                       // Acquires that came to nothing: not among those above.
};

/// What a clock shows that counts CPU time, in user and system mode.
std::chrono::nanoseconds cpu_time(clockid_t of);
std::chrono::nanoseconds cpu_of_this_thread();

/// Measures one stretch: a client calls it at the same points whatever it is made of.
class stopwatch
{
  public:
    /// Makes room for all figures. Nothing is counted before the first pair begins.
    stopwatch(run_record& into, const workload& load);

    using clock = std::chrono::steady_clock;

    /// Whether there is another pair to begin. If so, its acquire begins now. The worker's pair before ends now: when
    /// that one was asked for is what `asked` is at first, or nothing.
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

/// One client with its connections. It works on the thread that calls it, which is all that is measured.
class client
{
  public:
    client() = default;
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    virtual ~client() = default;

    /// Acquires and releases, one after the other. When it returns, nothing of it is unanswered by a master
    /// that is up.
    virtual run_record run(const workload& load) = 0;
};

} // namespace redlock::bench
