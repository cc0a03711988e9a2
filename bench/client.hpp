// SPDX-License-Identifier: BSL-1.0
// What every client under measurement has in common, whatever it is made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
struct work
{
    std::size_t pairs; // Of acquire and release, of all workers together.
    std::chrono::nanoseconds at_most = std::chrono::minutes{5};
    std::size_t workers = 1; // So many do it at the same time, each with a resource of its own.
};

/// What a client did in one stretch of work.
struct stretch
{
    std::vector<std::chrono::nanoseconds> acquires; // How long each took.
    std::chrono::nanoseconds lasted{0};             // All of it.
    std::chrono::nanoseconds cpu{0};                // Of the client, in user and system mode.
    std::uint64_t allocations = 0;                  // From the heap, by the client.
    std::uint64_t unconfirmed = 0;                  // Releases that no majority confirmed in time, or failed.
    std::uint64_t failed = 0;                       // Acquires that came to nothing: not among those above.

    std::size_t pairs() const { return acquires.size(); }
};

/// In user and system mode.
std::chrono::nanoseconds cpu_of_this_thread();

/// Measures one stretch: a client calls it at the same points whatever it is made of.
class stopwatch
{
  public:
    /// Makes room for all figures first, so that none of it is counted.
    stopwatch(stretch& into, const work& what);

    using clock = std::chrono::steady_clock;

    /// Whether there is another acquire to begin. If so, it begins now.
    bool begin_acquire(clock::time_point& asked);
    void end_acquire(clock::time_point asked);
    void finish();

  private:
    stretch& into_;
    work what_;
    clock::time_point began_{};
    std::size_t begun_ = 0;
    std::chrono::nanoseconds cpu_before_{};
    std::uint64_t allocations_before_ = 0;
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
    virtual stretch run(const work& what) = 0;
};

} // namespace redlock::bench
