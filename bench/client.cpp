// SPDX-License-Identifier: BSL-1.0
// The stopwatch of the clients.
#include "client.hpp"

#include "allocation_counter.hpp"

#include <ctime>

namespace redlock::bench
{

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
    allocations_before_ = allocations_of_this_thread();
    began_ = clock::now();
}

void stopwatch::begin_acquire()
{
    asked_ = clock::now();
}

void stopwatch::end_acquire()
{
    into_.acquires.push_back(clock::now() - asked_);
}

bool stopwatch::goes_on() const
{
    return into_.acquires.size() < what_.pairs && clock::now() - began_ < what_.at_most;
}

void stopwatch::finish()
{
    into_.allocations = allocations_of_this_thread() - allocations_before_;
    into_.cpu = cpu_of_this_thread() - cpu_before_;
}

} // namespace redlock::bench
