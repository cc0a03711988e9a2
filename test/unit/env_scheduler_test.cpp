// SPDX-License-Identifier: BSL-1.0
// Turns: one at a time, on whatever thread; and what is told behind them.
#include "env/scheduler.hpp"
#include "host.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test
{

namespace
{

namespace asio = boost::asio;
using env::scheduler;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

/// What a connection does at the end of a turn: it writes.
struct writer final : env::end_of_turn
{
    void on_end_of_turn() override { ++writes; }

    int writes = 0;
};

} // namespace

TEST_CASE("what is due at the end of a turn waits for those that are ready, where more is expected")
{
    const bool more = GENERATE(false, true);
    CAPTURE(more);
    asio::io_context io;
    const auto here = started(io.get_executor());
    writer link;
    const auto say_something = [&]
    {
        here->strand.expect_more(more);
        here->strand.at_end_of_turn(link);
    };
    for (int turn = 0; turn < 3; ++turn)
    {
        asio::post(io, here->strand.bind(say_something));
    }
    io.run();
    CHECK(link.writes == (more ? 1 : 3));
    // And again.
    io.restart();
    asio::post(io, here->strand.bind(say_something));
    io.run();
    CHECK(link.writes == (more ? 2 : 4));
}

TEST_CASE(
    "what a thread brings while another one is in a turn is done behind that turn, and there", "[threads]")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    std::thread::id done_by;
    here->strand.turn(
        [&]
        {
            const auto second = [&]
            {
                done_by = std::this_thread::get_id();
                order.emplace_back("second");
            };
            // It doesn't wait.
            std::thread{[&] { here->strand.turn(second); }}.join();
            order.emplace_back("first");
        });
    CHECK(order == words{"first", "second"});
    CHECK(done_by == std::this_thread::get_id());
}

TEST_CASE("a turn that is begun inside of another one is done behind that")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    here->strand.turn(
        [&]
        {
            here->strand.turn([&] { order.emplace_back("inner"); });
            order.emplace_back("outer");
        });
    CHECK(order == words{"outer", "inner"});
}

TEST_CASE("turns come one after the other, however many threads bring them", "[threads]")
{
    constexpr int turns = 20'000;
    asio::thread_pool threads{4};
    const auto here = started(threads.get_executor());
    int count = 0; // Of one thread at a time. Nothing but the turns puts the threads in order.
    std::atomic<int> at_once = 0;
    std::atomic<bool> alone = true;
    for (int each = 0; each < turns; ++each)
    {
        auto bound = here->strand.bind(
            [&]
            {
                constexpr auto unordered = std::memory_order_relaxed;
                if (at_once.fetch_add(1, unordered) != 0)
                {
                    alone.store(false, unordered);
                }
                ++count;
                at_once.fetch_sub(1, unordered);
            });
        asio::post(threads, std::move(bound));
    }
    threads.wait();
    CHECK(alone);
    CHECK(count == turns);
}

TEST_CASE("what one thread calls for is done in that order, however many threads do it", "[threads]")
{
    constexpr int calls = 20'000;
    asio::thread_pool threads{4};
    const auto here = started(threads.get_executor());
    std::vector<int> order;
    for (int each = 0; each < calls; ++each)
    {
        const auto call = [&order, each] { order.push_back(each); };
        if (each % 2 == 0)
        {
            here->strand.enter(call);
        }
        else
        {
            here->strand.post(call);
        }
    }
    threads.wait();
    CHECK(order.size() == calls);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a call on a thread of the executor's comes behind those that wait")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    asio::post(
        io,
        [&]
        {
            here->strand.post([&] { order.emplace_back("first"); });
            here->strand.enter([&] { order.emplace_back("second"); });
            order.emplace_back("went on");
        });
    io.run();
    CHECK(order == words{"first", "second", "went on"});
}

TEST_CASE("a handler that is bound is a turn, and keeps the owner alive until then")
{
    std::weak_ptr<host> there;
    std::optional<bool> alive;
    asio::io_context io;
    {
        const auto here = started(io.get_executor());
        there = here;
        asio::post(io, here->strand.bind([&] { alive = !there.expired(); }));
    }
    CHECK_FALSE(there.expired());
    io.run();
    CHECK(alive == true);
    CHECK(there.expired());
}

TEST_CASE("what is told to the outside is told behind the turn, when others may be taken")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    here->strand.turn(
        [&]
        {
            here->strand.after_turn(
                [&]
                {
                    order.emplace_back("told");
                    here->strand.turn([&] { order.emplace_back("another turn"); });
                    order.emplace_back("went on");
                });
            order.emplace_back("turn");
        });
    CHECK(order == words{"turn", "told", "another turn", "went on"});
}

TEST_CASE("what is told together goes on together: what it leads to goes out at once")
{
    const int told = GENERATE(1, 2, 3);
    CAPTURE(told);
    asio::io_context io;
    const auto here = started(io.get_executor());
    writer link;
    int begun = 0;
    const auto begin_something_new = [&]
    {
        here->strand.enter([&] { here->strand.at_end_of_turn(link); });
        // Not before the last one, and then at once.
        CHECK(link.writes == (++begun == told ? 1 : 0));
    };
    auto all_come_to_their_end = [&]
    {
        for (int each = 0; each < told; ++each)
        {
            here->strand.after_turn(begin_something_new);
        }
    };
    asio::post(io, here->strand.bind(all_come_to_their_end));
    io.run();
    CHECK(link.writes == 1);
}

TEST_CASE("what a call of the user's leads to at once is told later: not inside of the call")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    bool seen = false;
    bool inside = false;
    const auto call = [&]
    {
        inside = true;
        here->strand.enter(
            [&]
            {
                here->strand.after_turn(
                    [&]
                    {
                        CHECK_FALSE(inside);
                        seen = true;
                    });
            });
        inside = false;
    };
    SECTION("on a thread of the executor's, where the turn is taken inside of it")
    {
        asio::post(io, call);
    }
    SECTION("on another one")
    {
        call();
        CHECK_FALSE(seen);
    }
    io.run();
    CHECK(seen);
}

TEST_CASE("what one turn tells waits for no other: each has a handler of its own", "[threads]")
{
    asio::thread_pool threads{2};
    const auto here = started(threads.get_executor());
    std::promise<void> second;
    std::promise<bool> first;
    here->strand.post(
        [&]
        {
            here->strand.after_turn(
                [&]
                { first.set_value(second.get_future().wait_for(generous) == std::future_status::ready); });
            here->strand.after_turn([&] { second.set_value(); });
        });
    CHECK(first.get_future().get());
    threads.wait();
}

TEST_CASE("nothing is told once the context was stopped")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int told_so_far = 0;
    here->strand.post(
        [&]
        {
            for (int each = 0; each < 3; ++each)
            {
                here->strand.after_turn(
                    [&]
                    {
                        ++told_so_far;
                        io.stop();
                    });
            }
        });
    io.run();
    CHECK(told_so_far == 1);
    io.restart();
    io.run();
    CHECK(told_so_far == 2);
}

TEST_CASE("a thread that makes the turns of others comes back, however many there are")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    constexpr int endless = 1'000'000;
    int turns = 0;
    bool stop = false;
    std::function<void()> again = [&]
    {
        if (++turns < endless && !stop)
        {
            here->strand.post(again);
        }
    };
    here->strand.post(again);
    bool told_of_it = false;
    here->strand.post([&] { here->strand.after_turn([&] { told_of_it = true; }); });
    // Behind the first handlers, those of others have their time.
    asio::post(io, [&] { asio::post(io, [&] { stop = told_of_it; }); });
    io.run();
    CHECK(stop);
    CHECK(turns < endless);
}

TEST_CASE("a turn that waits may have the last hold on its owner")
{
    asio::io_context io;
    auto here = started(io.get_executor());
    const std::weak_ptr<host> there = here;
    env::scheduler& strand = here->strand;
    // As an operation of several steps does: each takes the handler along into the next.
    strand.turn([&strand, owner = std::move(here)]() mutable
                { strand.turn([owner = std::move(owner)] { CHECK(owner); }); });
    CHECK(there.expired());
}

TEST_CASE("turns that wait when their context goes are forgotten, with what they keep")
{
    std::weak_ptr<host> there;
    auto io = std::make_unique<asio::io_context>();
    {
        const auto here = started(io->get_executor());
        there = here;
        here->strand.turn(
            [&]
            {
                for (int each = 0; each < 1000; ++each)
                {
                    // As a handler's would, each of them keeps its owner.
                    here->strand.turn([here] {});
                }
            });
    }
    CHECK_FALSE(there.expired());
    io.reset();
    CHECK(there.expired());
}

TEST_CASE("a handler that throws takes nothing from the others, and no turn")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    const auto tell = [&]
    {
        here->strand.after_turn(
            [&]
            {
                order.emplace_back("first");
                throw std::runtime_error{"first"};
            });
        here->strand.after_turn([&] { order.emplace_back("second"); });
    };
    CHECK_THROWS_AS(here->strand.turn(tell), std::runtime_error);
    CHECK(order == words{"first"});
    io.run();
    CHECK(order == words{"first", "second"});
    here->strand.turn([&] { order.emplace_back("turn"); });
    CHECK(order.back() == "turn");
}

TEST_CASE("an executor runs things at once on the threads of its own context only, and only if it may block")
{
    asio::io_context io;
    asio::io_context other;
    asio::thread_pool pool{1};
    const asio::any_io_executor plain = io.get_executor();
    const asio::any_io_executor working = asio::prefer(plain, asio::execution::outstanding_work.tracked);
    CHECK_FALSE(env::runs_here(plain));
    CHECK_FALSE(env::runs_here(working));
    asio::post(
        io,
        [&]
        {
            CHECK(env::runs_here(plain));
            CHECK(env::runs_here(working));
            CHECK_FALSE(env::runs_here(asio::require(plain, asio::execution::blocking.never)));
            CHECK_FALSE(env::runs_here(asio::require(working, asio::execution::blocking.never)));
            CHECK_FALSE(env::runs_here(other.get_executor()));
            CHECK_FALSE(env::runs_here(pool.get_executor()));
            CHECK_FALSE(env::runs_here(asio::make_strand(io)));
            CHECK_FALSE(env::runs_here({}));
        });
    CHECK(io.run_one() == 1);
}

} // namespace redlock::test
