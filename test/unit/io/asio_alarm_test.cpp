// SPDX-License-Identifier: BSL-1.0
// The real timer under a scheduler: each deadline fires in a separate step, not early, and in order.
#include "runtime/deadline_queue.hpp"
#include "runtime/scheduler.hpp"
#include "unit/host.hpp"
#include "unit/probe.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch_test_macros.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
namespace asio = boost::asio;
using runtime::scheduler;

/// Runs until `done` returns true or a generous timeout expires; returns the last result of `done`.
bool run_until(asio::io_context& io, const std::function<bool()>& done)
{
    const clock::time_point end = clock::now() + generous;
    while (!done() && clock::now() < end && io.run_one_for(generous) != 0)
    {
    }
    return done();
}

} // namespace

TEST_CASE("a deadline fires, and not before its time")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    clock::time_point fired{};
    probe item{[&] { fired = here->strand.now(); }};
    const clock::time_point when = here->strand.now() + 20ms;
    here->strand.run_step([&] { here->strand.arm(item, when); });
    CHECK(run_until(io, [&] { return fired != clock::time_point{}; }));
    CHECK(fired >= when);
}

TEST_CASE("deadlines fire in order of their time, not of their arming")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    std::vector<int> fired;
    probe first{[&] { fired.push_back(1); }};
    probe second{[&] { fired.push_back(2); }};
    probe third{[&] { fired.push_back(3); }};
    const clock::time_point now = here->strand.now();
    here->strand.run_step(
        [&]
        {
            here->strand.arm(second, now + 15ms);
            here->strand.arm(third, now + 20ms);
            here->strand.arm(first, now + 5ms);
        });
    CHECK(run_until(io, [&] { return fired.size() == 3; }));
    CHECK(fired == std::vector<int>{1, 2, 3});
}

TEST_CASE("an earlier deadline moves a pending alarm forward")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int fired = 0;
    probe far{[&] { FAIL_CHECK("an hour hasn't passed"); }};
    probe near{[&] { ++fired; }};
    here->strand.run_step([&] { here->strand.arm(far, here->strand.now() + 1h); });
    io.poll();
    here->strand.run_step([&] { here->strand.arm(near, here->strand.now() + 1ms); });
    CHECK(run_until(io, [&] { return fired == 1; }));
    CHECK(far.armed());
}

TEST_CASE("a deadline in the past fires in a later step, not immediately")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int fired = 0;
    probe item{[&] { ++fired; }};
    here->strand.run_step([&] { here->strand.arm(item, clock::time_point{}); });
    CHECK(fired == 0);
    CHECK(run_until(io, [&] { return fired == 1; }));
}

TEST_CASE("a deadline that arms itself again keeps firing, and doesn't starve other work")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int fired = 0;
    int posted = 0;
    probe item{[&]
               {
                   ++fired;
                   here->strand.arm(item, clock::time_point{});
               }};
    const std::function<void()> post = [&]
    {
        ++posted;
        asio::post(io, post);
    };
    here->strand.run_step([&] { here->strand.arm(item, clock::time_point{}); });
    asio::post(io, post);
    CHECK(run_until(io, [&] { return fired >= 20 && posted >= 20; }));
    here->strand.close();
    io.stop();
}

TEST_CASE("a disarmed deadline doesn't fire with the alarm set for it")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int fired = 0;
    probe dropped{[&] { FAIL_CHECK("it was disarmed"); }};
    probe kept{[&] { ++fired; }};
    const clock::time_point now = here->strand.now();
    here->strand.run_step(
        [&]
        {
            here->strand.arm(dropped, now + 1ms);
            here->strand.arm(kept, now + 2ms);
        });
    dropped.disarm();
    CHECK(run_until(io, [&] { return fired == 1; }));
}

TEST_CASE("a deadline that is moved to a later time fires once, at that time")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    std::vector<clock::time_point> fired;
    probe item{[&] { fired.push_back(here->strand.now()); }};
    const clock::time_point now = here->strand.now();
    here->strand.run_step([&] { here->strand.arm(item, now + 1ms); });
    here->strand.run_step([&] { here->strand.arm(item, now + 30ms); });
    CHECK(run_until(io, [&] { return !fired.empty(); }));
    REQUIRE(fired.size() == 1);
    CHECK(fired[0] >= now + 30ms);
}

TEST_CASE("no alarm fires after close(), and none keeps the context running")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    probe past{[&] { FAIL_CHECK("it was closed"); }};
    probe far{[&] { FAIL_CHECK("an hour hasn't passed"); }};
    here->strand.run_step([&] { here->strand.arm(far, here->strand.now() + 1h); });
    here->strand.run_step([&] { here->strand.close(); });
    here->strand.run_step([&] { here->strand.arm(past, clock::time_point{}); });
    io.run_for(generous);
    CHECK(io.stopped());
    CHECK(past.armed());
}

TEST_CASE("an alarm that has fired but wasn't processed is discarded by close()")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    probe past{[&] { FAIL_CHECK("it was closed"); }};
    here->strand.run_step([&] { here->strand.arm(past, clock::time_point{}); });
    here->strand.run_step([&] { here->strand.close(); });
    io.run_for(generous);
    CHECK(io.stopped());
    CHECK(past.armed());
}

TEST_CASE("an operation in flight keeps its owner alive until it completes")
{
    asio::io_context io;
    auto here = started(io.get_executor());
    const std::weak_ptr<host> there = here;
    bool alive_then = false;
    asio::post(io, here->strand.bind([&] { alive_then = !there.expired(); }));
    here.reset();
    CHECK_FALSE(there.expired());
    io.run_for(generous);
    CHECK(alive_then);
    CHECK(there.expired());
}

TEST_CASE("destroying the context with a pending alarm destroys the owner")
{
    std::weak_ptr<host> there;
    int fired = 0;
    probe item{[&] { ++fired; }};
    {
        asio::io_context io;
        auto here = started(io.get_executor());
        there = here;
        here->strand.run_step([&] { here->strand.arm(item, here->strand.now() + 1h); });
        io.poll();
    }
    CHECK(there.expired());
    CHECK(fired == 0);
    CHECK_FALSE(item.armed());
}

} // namespace redlock::test
