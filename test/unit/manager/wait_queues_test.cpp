// SPDX-License-Identifier: BSL-1.0
// Which masters are passed over as queue masters, and for how long; and the acquires that have left.
#include "manager/wait_queues.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

using manager::wait_queues;
using manager::waiter;

/// Has only what `wait_queues::open` needs.
class bytes_alone final : public runtime::environment
{
  public:
    clock::time_point now() const noexcept override { return {}; }
    void random(std::span<std::byte> out) const noexcept override
    {
        std::fill(out.begin(), out.end(), std::byte{1});
    }
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler&, const master&) const override
    {
        return nullptr;
    }
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler&) const override { return nullptr; }
};

constexpr std::size_t doubted = 1;
constexpr std::uint64_t another_key = 1'000'000;
constexpr clock::time_point first_doubt{1h};

/// The queues of a manager with three masters.
class three_queues : public wait_queues
{
  public:
    three_queues() : wait_queues{1} { open(bytes_alone{}, 3); }

    /// The doubted master is overruled for so many resources.
    void overrule_for(std::size_t resources, std::uint64_t first, clock::time_point at)
    {
        for (std::uint64_t key = first; key < first + resources; ++key)
        {
            overrule(doubted, key, at);
        }
    }
};

} // namespace

TEST_CASE("queue: an overruled master is passed over for its resource alone, for a second")
{
    three_queues queues;
    queues.overrule(doubted, 7, first_doubt);
    CHECK(queues.is_passed_over(doubted, 7, first_doubt));
    CHECK(queues.is_passed_over(doubted, 7, first_doubt + wait_queues::distrust - 1ns));
    CHECK_FALSE(queues.is_passed_over(doubted, 7, first_doubt + wait_queues::distrust));
    CHECK_FALSE(queues.is_passed_over(doubted, another_key, first_doubt));
    CHECK_FALSE(queues.is_passed_over(0, 7, first_doubt));
    CHECK(queues.doubts(first_doubt));
    CHECK_FALSE(queues.doubts(first_doubt + wait_queues::distrust));
}

TEST_CASE("queue: of too many doubts, the latest count, and none concerns another resource")
{
    three_queues queues;
    queues.overrule_for(wait_queues::max_overruled, 0, first_doubt);
    SECTION("the same resource again is no more of them")
    {
        for (std::size_t time = 0; time < wait_queues::max_overruled; ++time)
        {
            queues.overrule(doubted, wait_queues::max_overruled - 1, first_doubt);
        }
        CHECK(queues.is_passed_over(doubted, 0, first_doubt));
    }
    SECTION("one more")
    {
        queues.overrule(doubted, wait_queues::max_overruled, first_doubt);
        CHECK(queues.is_passed_over(doubted, wait_queues::max_overruled, first_doubt));
        CHECK(queues.is_passed_over(doubted, 1, first_doubt));
        CHECK_FALSE(queues.is_passed_over(doubted, 0, first_doubt));
    }
    CHECK_FALSE(queues.is_passed_over(doubted, another_key, first_doubt));
    CHECK_FALSE(queues.is_passed_over(0, 1, first_doubt));
}

TEST_CASE("queue: an acquire that has left is remembered however many wait afterwards")
{
    constexpr std::size_t before = 1000;
    constexpr std::size_t at_first = 600;
    constexpr std::size_t later = 5000;
    boost::asio::io_context io;
    runtime::scheduler strand{io.get_executor()};
    runtime::async_event never{strand};
    three_queues queues;
    std::list<waiter> waiting;
    const auto leave = [&](const waiter& each)
    {
        queues.note_departure(
            each.number(), std::to_string(each.number()), 1ms * static_cast<std::int64_t>(each.number()));
    };
    const auto is_remembered = [&](std::uint64_t number)
    {
        const auto* const found = queues.find_departure(number);
        return found != nullptr && found->resource == std::to_string(number) &&
               found->ttl == 1ms * static_cast<std::int64_t>(number);
    };
    for (std::size_t each = 0; each < before; ++each) // One after the other.
    {
        const waiter alone{queues, never};
    }
    for (std::size_t each = 0; each < at_first; ++each)
    {
        waiting.emplace_back(queues, never);
    }
    for (const waiter& each : waiting)
    {
        leave(each);
    }
    for (std::size_t each = 0; each < later; ++each)
    {
        waiting.emplace_back(queues, never);
    }
    leave(waiting.back());
    for (std::uint64_t number = before + 1; number <= before + at_first; ++number)
    {
        CAPTURE(number);
        CHECK(is_remembered(number));
    }
    CHECK(is_remembered(before + at_first + later));
    CHECK(queues.find_departure(before + at_first + 1) == nullptr);
}

TEST_CASE("queue: a release is remembered whatever else arrives before the acquire sees it")
{
    boost::asio::io_context io;
    runtime::scheduler strand{io.get_executor()};
    runtime::async_event event{strand};
    three_queues queues;
    waiter one{queues, event};
    CHECK_FALSE(one.woken());
    one.wake(net::wake_reason::kicked);
    CHECK(one.woken() == net::wake_reason::kicked);
    one.wake(net::wake_reason::released);
    one.wake(net::wake_reason::kicked);
    CHECK(one.woken() == net::wake_reason::released);
    one.sleep();
    CHECK_FALSE(one.woken());
}

} // namespace redlock::test
