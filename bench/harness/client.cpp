// SPDX-License-Identifier: BSL-1.0
// The stopwatch of the clients.
#include "harness/client.hpp"

#include "cost/allocation_counter.hpp"

#include <fmt/format.h>

namespace redlock::bench
{

std::string resource_of(std::string_view kind, std::size_t worker)
{
    return fmt::format("{}:{}", kind, worker);
}

std::chrono::nanoseconds cpu_time(clockid_t of)
{
    timespec now{};
    clock_gettime(of, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

std::chrono::nanoseconds cpu_of_this_thread()
{
    return cpu_time(CLOCK_THREAD_CPUTIME_ID);
}

stopwatch::stopwatch(run_record& into, const workload& load) : into_{into}, load_{load}
{
    const std::int64_t heap_before = test::heap_of_this_thread();
    into_.acquires.reserve(load.pairs);
    into_.pairs.reserve(load.pairs);
    heap_of_samples_ = test::heap_of_this_thread() - heap_before;
}

void stopwatch::begin_counting()
{
    test::forget_heap_peak();
    cpu_before_ = cpu_of_this_thread();
    allocations_before_ = test::allocations_of_this_thread();
    calls_before_ = system_calls_of_this_thread();
    began_ = clock::now();
}

bool stopwatch::begin_pair(clock::time_point& start)
{
    if (begun_ == 0)
    {
        begin_counting();
    }
    const clock::time_point now = clock::now();
    if (start != clock::time_point{})
    {
        into_.pairs.push_back(now - start);
    }
    start = now;
    if (begun_ == load_.pairs || now - began_ >= load_.time_limit)
    {
        return false;
    }
    ++begun_;
    return true;
}

void stopwatch::end_acquire(clock::time_point start)
{
    into_.acquires.push_back(clock::now() - start);
}

void stopwatch::finish()
{
    into_.duration = clock::now() - began_;
    into_.calls = system_calls_of_this_thread() - calls_before_;
    into_.allocations = test::allocations_of_this_thread() - allocations_before_;
    into_.cpu = cpu_of_this_thread() - cpu_before_;
    into_.heap_peak = test::heap_peak_of_this_thread() - heap_of_samples_;
}

} // namespace redlock::bench
