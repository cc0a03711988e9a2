// SPDX-License-Identifier: BSL-1.0
// The real clock and the real source of random numbers: which clock is read, and that no two processes draw the same
// numbers.
#include "io/asio_environment.hpp"
#include "support/child_process.hpp"

#include <redlock/clock.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace
{

/// The clock that this thread has read last.
thread_local clockid_t clock_that_was_read = -1;

/// The most bytes that getrandom() returns per call, and how many calls a signal interrupts first.
thread_local std::size_t max_at_once = std::numeric_limits<std::size_t>::max();
thread_local int interruptions = 0;

} // namespace

/// Replaces the C library's function for the whole executable. CLOCK_BOOTTIME and CLOCK_MONOTONIC agree on a machine
/// that was never suspended, so the test has to see which one is read.
extern "C" int clock_gettime(clockid_t which, timespec* value) noexcept
{
    clock_that_was_read = which;
    return static_cast<int>(::syscall(SYS_clock_gettime, which, value));
}

/// Replaces the C library's function. The kernel returns everything at once unless a signal interrupts it.
extern "C" ssize_t getrandom(void* out, size_t length, unsigned int flags)
{
    if (interruptions > 0)
    {
        --interruptions;
        errno = EINTR;
        return -1;
    }
    return ::syscall(SYS_getrandom, out, std::min(length, max_at_once), flags);
}

namespace redlock::test
{

namespace
{

using bytes = std::array<std::byte, 32>;

std::chrono::nanoseconds boot_time()
{
    timespec value{};
    ::clock_gettime(CLOCK_BOOTTIME, &value);
    return std::chrono::seconds{value.tv_sec} + std::chrono::nanoseconds{value.tv_nsec};
}

/// Returns random bytes that this process draws.
std::string draw(const runtime::environment& outside)
{
    bytes drawn{};
    outside.random(drawn);
    return {reinterpret_cast<const char*>(drawn.data()), drawn.size()};
}

/// Returns random bytes that a forked child draws.
std::string drawn_in_child(const runtime::environment& outside)
{
    unique_fd result;
    const child_process child{[&outside] { return draw(outside); }, result};
    std::string drawn = read_to_end(result);
    if (drawn.size() != bytes{}.size())
    {
        throw std::runtime_error{"the child didn't draw"};
    }
    return drawn;
}

} // namespace

TEST_CASE("the lease clock keeps running while the machine is suspended", "[scenario-13]")
{
    clock_that_was_read = -1;
    static_cast<void>(clock::now());
    CHECK(clock_that_was_read == CLOCK_BOOTTIME);

    const io::asio_environment outside;
    clock_that_was_read = -1;
    static_cast<void>(outside.now());
    CHECK(clock_that_was_read == CLOCK_BOOTTIME);
}

TEST_CASE("the lease clock counts the time since boot, in nanoseconds", "[scenario-13]")
{
    const io::asio_environment outside;
    for (int turn = 0; turn < 1000; ++turn)
    {
        const auto before = boot_time();
        const auto now = clock::now().time_since_epoch();
        const auto of_environment = outside.now().time_since_epoch();
        const auto after = boot_time();
        REQUIRE(before <= now);
        REQUIRE(now <= of_environment);
        REQUIRE(of_environment <= after);
    }
}

TEST_CASE("random numbers fill the whole buffer, even if the kernel returns less at once")
{
    const io::asio_environment outside;
    std::vector<std::byte> many(16'000);
    max_at_once = 7;
    interruptions = 3;
    outside.random(many);
    max_at_once = std::numeric_limits<std::size_t>::max();
    CHECK(interruptions == 0);
    // Every piece of 16 bytes is drawn: it is all zero with a probability of 2^-128.
    std::size_t empty_pieces = 0;
    const std::span<const std::byte> all{many};
    for (std::size_t at = 0; at < many.size(); at += 16)
    {
        const auto piece = all.subspan(at, 16);
        const bool empty =
            std::all_of(piece.begin(), piece.end(), [](std::byte one) { return one == std::byte{}; });
        empty_pieces += empty ? 1 : 0;
    }
    CHECK(empty_pieces == 0);
    outside.random({});
}

TEST_CASE("no two draws are equal")
{
    const io::asio_environment outside;
    std::set<bytes> different;
    for (int draw = 0; draw < 1000; ++draw)
    {
        bytes drawn{};
        outside.random(drawn);
        different.insert(drawn);
    }
    CHECK(different.size() == 1000);
}

TEST_CASE("parent and children draw different numbers after a fork", "[scenario-54]")
{
    const io::asio_environment outside;
    // Drawn before the forks, so that a generator inside of the process would have its state already.
    std::set<std::string> different{draw(outside)};
    different.insert({drawn_in_child(outside), drawn_in_child(outside), drawn_in_child(outside)});
    different.insert(draw(outside));
    CHECK(different.size() == 5);
}

} // namespace redlock::test
