// SPDX-License-Identifier: BSL-1.0
// Steps of the scheduler, one at a time on any thread, and the completions delivered after them.
#include "runtime/scheduler.hpp"
#include "unit/host.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <array>
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
using runtime::scheduler;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

/// Counts its ends of a step, at which a connection writes.
struct writer final : runtime::step_end_hook
{
    void on_step_end() override { ++writes; }

    int writes = 0;
};

} // namespace

TEST_CASE("end-of-step work waits for the handlers that are ready, if more are expected")
{
    const bool more = GENERATE(false, true);
    CAPTURE(more);
    asio::io_context io;
    const auto here = started(io.get_executor());
    writer link;
    const auto say_something = [&]
    {
        here->strand.expect_more(more);
        here->strand.at_step_end(link);
    };
    for (int turn = 0; turn < 3; ++turn)
    {
        asio::post(io, here->strand.bind(say_something));
    }
    io.run();
    CHECK(link.writes == (more ? 1 : 3));
    // A second run behaves alike.
    io.restart();
    asio::post(io, here->strand.bind(say_something));
    io.run();
    CHECK(link.writes == (more ? 2 : 4));
}

TEST_CASE("a handler that keeps the executor's strand busy delays neither steps nor their ends", "[threads]")
{
    asio::thread_pool pool{2};
    asio::io_context io;
    const auto busy = asio::make_work_guard(io);
    std::thread one{[&] { io.run(); }};
    std::thread other{[&] { io.run(); }};
    const std::array<asio::any_io_executor, 4> strands{
        asio::make_strand(io), asio::make_strand(pool),
        asio::make_strand(asio::any_io_executor{io.get_executor()}),
        asio::make_strand(asio::any_io_executor{asio::make_strand(io)})};
    const asio::any_io_executor& strand = strands.at(GENERATE(0U, 1U, 2U, 3U));
    struct signalling final : runtime::step_end_hook
    {
        void on_step_end() override { written.set_value(); }

        std::promise<void> written;
    };
    signalling link;
    std::promise<void> tried;
    const auto here = started(strand);
    asio::post(
        strand,
        [&]
        {
            here->strand.post(
                [&]
                {
                    here->strand.expect_more(true);
                    here->strand.at_step_end(link);
                });
            CHECK(link.written.get_future().wait_for(generous) == std::future_status::ready);
            tried.set_value();
        });
    tried.get_future().wait();
    io.stop();
    one.join();
    other.join();
}

TEST_CASE("a step requested by another thread during a step runs after it, on its thread", "[threads]")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    std::thread::id done_by;
    here->strand.run_step(
        [&]
        {
            const auto second = [&]
            {
                done_by = std::this_thread::get_id();
                order.emplace_back("second");
            };
            // turn() returns without waiting.
            std::thread{[&] { here->strand.run_step(second); }}.join();
            order.emplace_back("first");
        });
    CHECK(order == words{"first", "second"});
    CHECK(done_by == std::this_thread::get_id());
}

TEST_CASE("a step that is started inside another one runs after it")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    here->strand.run_step(
        [&]
        {
            here->strand.run_step([&] { order.emplace_back("inner"); });
            order.emplace_back("outer");
        });
    CHECK(order == words{"outer", "inner"});
}

TEST_CASE("steps never overlap, however many threads request them", "[threads]")
{
    constexpr int turns = 20'000;
    asio::thread_pool threads{4};
    const auto here = started(threads.get_executor());
    int count = 0; // Not atomic: nothing but the scheduler orders the threads.
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

TEST_CASE("the calls of one thread run in their order, however many threads execute them", "[threads]")
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
            enter(here->strand, call);
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

TEST_CASE("a call on a thread of the executor runs after the steps that wait")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    asio::post(
        io,
        [&]
        {
            here->strand.post([&] { order.emplace_back("first"); });
            enter(here->strand, [&] { order.emplace_back("second"); });
            order.emplace_back("went on");
        });
    io.run();
    CHECK(order == words{"first", "second", "went on"});
}

TEST_CASE("a bound handler runs as a step, and keeps the owner alive until then")
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

TEST_CASE("a completion is delivered after the step, when another step may begin")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    here->strand.run_step(
        [&]
        {
            here->strand.after_step(
                [&]
                {
                    order.emplace_back("delivered");
                    here->strand.run_step([&] { order.emplace_back("another turn"); });
                    order.emplace_back("went on");
                });
            order.emplace_back("turn");
        });
    CHECK(order == words{"turn", "delivered", "another turn", "went on"});
}

TEST_CASE("completions delivered together share the end of the step that they lead to")
{
    const int told = GENERATE(1, 2, 3);
    CAPTURE(told);
    asio::io_context io;
    const auto here = started(io.get_executor());
    writer link;
    int begun = 0;
    const auto begin_something_new = [&]
    {
        enter(here->strand, [&] { here->strand.at_step_end(link); });
        // Not before the last completion, and then at once.
        CHECK(link.writes == (++begun == told ? 1 : 0));
    };
    auto all_come_to_their_end = [&]
    {
        for (int each = 0; each < told; ++each)
        {
            here->strand.after_step(begin_something_new);
        }
    };
    asio::post(io, here->strand.bind(all_come_to_their_end));
    io.run();
    CHECK(link.writes == 1);
}

TEST_CASE("a completion is never delivered inside the call that started its operation")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    bool seen = false;
    bool inside = false;
    const auto call = [&]
    {
        inside = true;
        enter(
            here->strand,
            [&]
            {
                here->strand.after_step(
                    [&]
                    {
                        CHECK_FALSE(inside);
                        seen = true;
                    });
            });
        inside = false;
    };
    SECTION("on a thread of the executor, where the step runs inside the call")
    {
        asio::post(io, call);
    }
    SECTION("on another thread")
    {
        call();
        CHECK_FALSE(seen);
    }
    io.run();
    CHECK(seen);
}

TEST_CASE("a completion does not wait for those of other operations", "[threads]")
{
    asio::thread_pool threads{2};
    const auto here = started(threads.get_executor());
    std::promise<void> second;
    std::promise<bool> first;
    here->strand.post(
        [&]
        {
            here->strand.after_step(
                [&]
                { first.set_value(second.get_future().wait_for(generous) == std::future_status::ready); });
            here->strand.after_step([&] { second.set_value(); });
        });
    CHECK(first.get_future().get());
    threads.wait();
}

TEST_CASE("no completion is delivered once the context is stopped")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    int told_so_far = 0;
    here->strand.post(
        [&]
        {
            for (int each = 0; each < 3; ++each)
            {
                here->strand.after_step(
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

TEST_CASE("a thread that runs the steps of others returns to its own work, however many there are")
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
    here->strand.post([&] { here->strand.after_step([&] { told_of_it = true; }); });
    // Posted by a posted handler, so it runs after the scheduler's first handler.
    asio::post(io, [&] { asio::post(io, [&] { stop = told_of_it; }); });
    io.run();
    CHECK(stop);
    CHECK(turns < endless);
}

TEST_CASE("a waiting step may hold the last reference to its owner")
{
    asio::io_context io;
    auto here = started(io.get_executor());
    const std::weak_ptr<host> there = here;
    runtime::scheduler& strand = here->strand;
    // As an operation of several steps does: each moves the handler into the next.
    strand.run_step([&strand, owner = std::move(here)]() mutable
                    { strand.run_step([owner = std::move(owner)] { CHECK(owner); }); });
    CHECK(there.expired());
}

TEST_CASE("destroying the context discards waiting steps, with what they own")
{
    std::weak_ptr<host> there;
    auto io = std::make_unique<asio::io_context>();
    {
        const auto here = started(io->get_executor());
        there = here;
        here->strand.run_step(
            [&]
            {
                for (int each = 0; each < 1000; ++each)
                {
                    // Each keeps its owner alive, as the handler of an operation does.
                    here->strand.run_step([here] {});
                }
            });
    }
    CHECK_FALSE(there.expired());
    io.reset();
    CHECK(there.expired());
}

TEST_CASE("a handler that throws affects neither other handlers nor later steps")
{
    asio::io_context io;
    const auto here = started(io.get_executor());
    words order;
    const auto tell = [&]
    {
        here->strand.after_step(
            [&]
            {
                order.emplace_back("first");
                throw std::runtime_error{"first"};
            });
        here->strand.after_step([&] { order.emplace_back("second"); });
    };
    CHECK_THROWS_AS(here->strand.run_step(tell), std::runtime_error);
    CHECK(order == words{"first"});
    io.run();
    CHECK(order == words{"first", "second"});
    here->strand.run_step([&] { order.emplace_back("turn"); });
    CHECK(order.back() == "turn");
}

TEST_CASE("an executor runs a function at once only on a thread of its context, and only if it may block")
{
    asio::io_context io;
    asio::io_context other;
    asio::thread_pool pool{1};
    const asio::any_io_executor plain = io.get_executor();
    const asio::any_io_executor working = asio::prefer(plain, asio::execution::outstanding_work.tracked);
    CHECK_FALSE(runtime::runs_here(plain));
    CHECK_FALSE(runtime::runs_here(working));
    asio::post(
        io,
        [&]
        {
            CHECK(runtime::runs_here(plain));
            CHECK(runtime::runs_here(working));
            CHECK_FALSE(runtime::runs_here(asio::require(plain, asio::execution::blocking.never)));
            CHECK_FALSE(runtime::runs_here(asio::require(working, asio::execution::blocking.never)));
            CHECK_FALSE(runtime::runs_here(other.get_executor()));
            CHECK_FALSE(runtime::runs_here(pool.get_executor()));
            CHECK_FALSE(runtime::runs_here(asio::make_strand(io)));
            CHECK_FALSE(runtime::runs_here({}));
        });
    CHECK(io.run_one() == 1);
}

} // namespace redlock::test
