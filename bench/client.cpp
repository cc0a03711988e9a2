// SPDX-License-Identifier: BSL-1.0
// The stopwatch of the clients.
#include "client.hpp"

#include "cost/allocation_counter.hpp"

#include <ctime>

#include <fmt/format.h>

namespace redlock::bench
{

std::string resource_of(std::string_view kind, std::size_t worker)
{
    return fmt::format("{}:{}", kind, worker);
}

std::chrono::nanoseconds cpu_of_this_thread()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

stopwatch::stopwatch(stretch& into, const work& what) : into_{into}, what_{what}
{
    into_.acquires.reserve(what.pairs);
    cpu_before_ = cpu_of_this_thread();
    allocations_before_ = test::allocations_of_this_thread();
    began_ = clock::now();
}

bool stopwatch::begin_acquire(clock::time_point& asked)
{
    asked = clock::now();
    if (begun_ == what_.pairs || asked - began_ >= what_.at_most)
    {
        return false;
    }
    ++begun_;
    return true;
}

void stopwatch::end_acquire(clock::time_point asked)
{
    into_.acquires.push_back(clock::now() - asked);
}

void stopwatch::finish()
{
    into_.lasted = clock::now() - began_;
    into_.allocations = test::allocations_of_this_thread() - allocations_before_;
    into_.cpu = cpu_of_this_thread() - cpu_before_;
}

} // namespace redlock::bench
