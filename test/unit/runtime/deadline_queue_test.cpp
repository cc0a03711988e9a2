// SPDX-License-Identifier: BSL-1.0
// The deadline queue, compared with a sorted reference.
#include "runtime/deadline_queue.hpp"
#include "unit/probe.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using runtime::deadline;
using runtime::deadline_queue;

clock::time_point at(std::int64_t nanoseconds)
{
    return clock::time_point{std::chrono::nanoseconds{nanoseconds}};
}

/// A deadline queue and its reference: the time of each armed deadline.
struct compared
{
    explicit compared(std::size_t count) : expected(count)
    {
        for (std::size_t index = 0; index < count; ++index)
        {
            items.push_back(make(index));
        }
    }

    std::unique_ptr<probe> make(std::size_t index)
    {
        return std::make_unique<probe>([this, index] { fired.push_back(index); });
    }

    std::optional<clock::time_point> earliest() const
    {
        std::optional<clock::time_point> result;
        for (const auto& one : expected)
        {
            if (one && (!result || *one < *result))
            {
                result = one;
            }
        }
        return result;
    }

    /// True if the queue agrees with the reference.
    bool agrees() const
    {
        for (std::size_t index = 0; index < items.size(); ++index)
        {
            if (items[index]->armed() != expected[index].has_value())
            {
                return false;
            }
        }
        return queue.next() == earliest().value_or(clock::time_point::max());
    }

    /// True if exactly the deadlines that are due fire, the earliest first.
    bool expires_rightly(clock::time_point now)
    {
        std::vector<std::size_t> due;
        for (std::size_t index = 0; index < expected.size(); ++index)
        {
            if (expected[index] && *expected[index] <= now)
            {
                due.push_back(index);
            }
        }
        fired.clear();
        queue.expire(now);
        const auto earlier = [this](std::size_t left, std::size_t right)
        { return *expected[left] < *expected[right]; };
        std::vector<std::size_t> seen = fired;
        bool right = false;
        std::sort(seen.begin(), seen.end());
        if (seen == due)
        {
            right = std::is_sorted(fired.begin(), fired.end(), earlier);
        }
        for (const std::size_t index : due)
        {
            expected[index].reset();
        }
        return right;
    }

    deadline_queue queue;
    std::vector<std::unique_ptr<probe>> items;
    std::vector<std::optional<clock::time_point>> expected;
    std::vector<std::size_t> fired;
};

} // namespace

TEST_CASE("the queue behaves like a sorted list over many random steps")
{
    std::mt19937_64 random{20240907};
    compared both{40};
    for (int step = 0; step < 50'000; ++step)
    {
        const std::size_t index = random() % both.items.size();
        const clock::time_point when = at(static_cast<std::int64_t>(random() % 100));
        bool fired_rightly = true;
        switch (random() % 8)
        {
        case 0:
            both.items[index]->disarm();
            both.expected[index].reset();
            break;
        case 1:
            // Armed or not, it is destroyed and replaced.
            both.items[index] = both.make(index);
            both.expected[index].reset();
            break;
        case 2:
            fired_rightly = both.expires_rightly(when);
            break;
        default:
            both.queue.arm(*both.items[index], when);
            both.expected[index] = when;
        }
        if (!fired_rightly || !both.agrees())
        {
            FAIL("step " << step << " left the queue different from its reference");
        }
    }
    CHECK(both.expires_rightly(clock::time_point::max()));
    CHECK(both.queue.next() == clock::time_point::max());
}

TEST_CASE("a deadline is due at its time, and not before")
{
    compared both{1};
    both.queue.arm(*both.items[0], at(100));
    both.queue.expire(at(99));
    CHECK(both.fired.empty());
    both.queue.expire(at(100));
    CHECK(both.fired.size() == 1);
    both.queue.expire(at(200));
    CHECK(both.fired.size() == 1);
}

TEST_CASE("arming again moves a deadline to an earlier or later time")
{
    compared both{2};
    both.queue.arm(*both.items[0], at(100));
    both.queue.arm(*both.items[1], at(50));
    both.queue.arm(*both.items[0], at(10));
    CHECK(both.queue.next() == at(10));
    both.queue.arm(*both.items[0], at(1000));
    CHECK(both.queue.next() == at(50));
    both.queue.expire(at(999));
    CHECK(both.fired == std::vector<std::size_t>{1});
}

TEST_CASE("a deadline is disarmed before its callback runs")
{
    deadline_queue queue;
    bool armed = true;
    probe item{[&] { armed = item.armed(); }};
    queue.arm(item, at(1));
    CHECK(item.armed());
    queue.expire(at(1));
    CHECK_FALSE(armed);
}

TEST_CASE("a callback can disarm other deadlines that are due")
{
    deadline_queue queue;
    int others = 0;
    probe second{[&] { ++others; }};
    probe third{[&] { ++others; }};
    probe first{[&]
                {
                    third.disarm();
                    second.disarm();
                }};
    queue.arm(first, at(1));
    queue.arm(second, at(2));
    queue.arm(third, at(3));
    queue.expire(at(10));
    CHECK(others == 0);
    CHECK(queue.next() == clock::time_point::max());
}

TEST_CASE("a callback can destroy other deadlines that are due, and its own")
{
    deadline_queue queue;
    int fired = 0;
    auto second = std::make_unique<probe>([&] { ++fired; });
    std::unique_ptr<probe> first;
    first = std::make_unique<probe>(
        [&]
        {
            ++fired;
            second.reset();
        });
    queue.arm(*first, at(1));
    queue.arm(*second, at(1));
    queue.arm(*second, at(2));
    queue.expire(at(10));
    CHECK(fired == 1);
    CHECK(queue.next() == clock::time_point::max());
}

TEST_CASE(
    "a callback that arms its deadline for the past runs again with the next expire(), and delays no other")
{
    deadline_queue queue;
    int again = 0;
    int later = 0;
    probe eager{[&]
                {
                    ++again;
                    queue.arm(eager, at(1));
                }};
    probe patient{[&] { ++later; }};
    queue.arm(eager, at(1));
    queue.arm(patient, at(5));
    queue.expire(at(10));
    CHECK(again == 1);
    CHECK(later == 1);
    CHECK(eager.armed());
    CHECK(queue.next() > at(10));
    queue.expire(at(20));
    CHECK(again == 2);
    eager.disarm();
}

TEST_CASE("a deadline armed by a callback for a time that has passed fires with the next expire()")
{
    deadline_queue queue;
    int news = 0;
    probe fresh{[&] { ++news; }};
    probe first{[&] { queue.arm(fresh, at(10)); }};
    queue.arm(first, at(1));
    queue.expire(at(10));
    CHECK(news == 0);
    CHECK(fresh.armed());
    queue.expire(at(11));
    CHECK(news == 1);
}

TEST_CASE("outside of callbacks, a deadline can be armed for the past and is due at once")
{
    compared both{1};
    both.queue.expire(at(1000));
    both.queue.arm(*both.items[0], at(5));
    CHECK(both.queue.next() == at(5));
    both.queue.expire(at(5));
    CHECK(both.fired.size() == 1);
}

TEST_CASE("a deadline that is destroyed removes itself from the queue")
{
    compared both{3};
    for (auto& item : both.items)
    {
        both.queue.arm(*item, at(7));
    }
    both.items[0].reset();
    both.queue.expire(at(7));
    std::sort(both.fired.begin(), both.fired.end());
    CHECK(both.fired == std::vector<std::size_t>{1, 2});
}

TEST_CASE("a queue that is destroyed disarms its deadlines, which may outlive it")
{
    auto queue = std::make_unique<deadline_queue>();
    int fired = 0;
    probe item{[&] { ++fired; }};
    queue->arm(item, at(1));
    queue.reset();
    CHECK_FALSE(item.armed());
    item.disarm();
    deadline_queue other;
    other.arm(item, at(1));
    other.expire(at(1));
    CHECK(fired == 1);
}

TEST_CASE("disarming a deadline that isn't armed has no effect")
{
    compared both{2};
    both.queue.arm(*both.items[1], at(1));
    both.items[0]->disarm();
    both.items[0]->disarm();
    CHECK(both.items[1]->armed());
}

} // namespace redlock::test
