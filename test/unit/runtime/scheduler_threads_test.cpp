// SPDX-License-Identifier: BSL-1.0
// The scheduler while other threads arrive: deep queues, the moment at which a queue drains, and its end.
#include "runtime/scheduler.hpp"
#include "unit/host.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::size_t requesters = 4;
constexpr int races = 5 * RACES;
constexpr int lifetimes = RACES / 200;

/// Waits until the condition holds. Returns false if it doesn't within `generous`.
template <class Condition>
bool eventually(Condition condition)
{
    // Without leaving the processor at first, so that the caller goes on at the same time as the thread it waits for.
    for (int spin = 0; spin < 2'000; ++spin)
    {
        if (condition())
        {
            return true;
        }
    }
    const auto limit = std::chrono::steady_clock::now() + generous;
    while (!condition())
    {
        if (std::chrono::steady_clock::now() > limit)
        {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

/// Requests a step in one of the three ways of a caller.
template <class Function>
void request(runtime::scheduler& strand, std::size_t way, Function function)
{
    switch (way % 3)
    {
    case 0:
        strand.post(std::move(function));
        break;
    case 1:
        enter(strand, std::move(function));
        break;
    default:
        strand.run_step(std::move(function), runtime::step_origin::user);
        break;
    }
}

/// Calls `work` with its index on each of the threads, until it is destroyed.
class crowd
{
  public:
    template <class Work>
    explicit crowd(Work work, std::size_t count = requesters)
    {
        for (std::size_t index = 0; index < count; ++index)
        {
            threads_.emplace_back([work, index]() mutable { work(index); });
        }
    }
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    ~crowd() { join(); }

    void join()
    {
        for (std::thread& each : threads_)
        {
            each.join();
        }
        threads_.clear();
    }

  private:
    std::vector<std::thread> threads_;
};

/// What ran in steps. Only the scheduler orders the threads: the log isn't atomic, for ThreadSanitizer to check.
class step_log
{
  public:
    void add(std::size_t requester, std::size_t number)
    {
        if (at_once_.fetch_add(1, std::memory_order_relaxed) != 0)
        {
            overlapped_ = true;
        }
        numbers_[requester].push_back(number);
        at_once_.fetch_sub(1, std::memory_order_relaxed);
    }
    /// Returns whether each requester's functions ran once, in order, and none at the same time as another.
    bool is_complete(std::size_t each) const
    {
        for (const std::vector<std::size_t>& numbers : numbers_)
        {
            for (std::size_t index = 0; index < numbers.size(); ++index)
            {
                if (numbers[index] != index)
                {
                    return false;
                }
            }
            if (numbers.size() != each)
            {
                return false;
            }
        }
        return !overlapped_;
    }

  private:
    std::array<std::vector<std::size_t>, requesters> numbers_;
    std::atomic<int> at_once_{0};
    bool overlapped_ = false;
};

/// A step that lasts until the other threads have queued `depth` functions behind it, and posts itself again.
struct long_step
{
    runtime::scheduler& strand;
    const std::atomic<std::size_t>& requested;
    const std::atomic<std::size_t>& ended; // Requesters that have requested everything.
    std::size_t depth;
    int left;
    bool* stuck;

    void operator()()
    {
        const std::size_t goal = requested + depth;
        // The thread of one requester may be the one that runs this step.
        if (!eventually([&] { return requested >= goal || ended >= requesters - 1; }))
        {
            *stuck = true;
        }
        if (--left > 0)
        {
            strand.post(*this);
        }
    }
};

} // namespace

TEST_CASE("functions queued during long steps run once each, in the order of their thread", "[threads]")
{
    constexpr std::size_t each = RACES / 2;
    asio::thread_pool pool{2};
    const auto here = started(pool.get_executor());
    step_log log;
    std::atomic<bool> begun{false};
    std::atomic<std::size_t> requested{0};
    std::atomic<std::size_t> ended{0};
    bool stuck = false;
    here->strand.post(
        [&]
        {
            begun = true;
            long_step{here->strand, requested, ended, 1'000, 50, &stuck}();
        });
    REQUIRE(eventually([&] { return begun.load(); }));
    crowd threads{[&](std::size_t requester)
                  {
                      for (std::size_t number = 0; number < each; ++number)
                      {
                          request(
                              here->strand, number + requester,
                              [&log, requester, number] { log.add(requester, number); });
                          ++requested;
                      }
                      ++ended;
                  }};
    threads.join();
    // Returns when no handler is left: a function that is still queued then would never run.
    pool.wait();
    CHECK(log.is_complete(each));
    CHECK_FALSE(stuck);
}

TEST_CASE("a request that arrives while the queue drains is never forgotten", "[threads]")
{
    const std::size_t runners = GENERATE(1U, 2U);
    const std::size_t others = GENERATE(1U, 2U);
    CAPTURE(runners, others);
    asio::io_context io;
    auto work = asio::make_work_guard(io);
    const auto here = started(io.get_executor());
    std::atomic<bool> ended{false};
    // Keeps a thread awake, because one that has to be woken arrives long after the queue has drained.
    std::function<void()> stay_awake = [&]
    {
        if (!ended)
        {
            asio::post(io, stay_awake);
        }
    };
    asio::post(io, stay_awake);
    crowd running{[&](std::size_t) { io.run(); }, runners};
    std::atomic<bool> forgotten{false};
    std::array<std::atomic<int>, 2> done{};
    int steps = 0;
    const auto go_on = [&](std::size_t requester)
    {
        // Further threads are slower, and wake the scheduler for one another.
        const int times = runners * others == 1 ? races : races / 25;
        // A busy machine, on which the threads seldom run at the same time, makes fewer attempts.
        const auto enough = std::chrono::steady_clock::now() + (times == races ? 4s : 1s);
        int requested = 0;
        for (int time = 0; time < times && !forgotten && std::chrono::steady_clock::now() < enough; ++time)
        {
            const int burst = time % 8 == 0 ? 2 : 1;
            for (int index = 0; index < burst; ++index)
            {
                // Mostly posted: a thread that runs the step itself meets no other.
                const auto way = static_cast<std::size_t>(time % 4 == 0 ? time / 4 + index : index);
                request(here->strand, way, [&done, &steps, requester] { ++steps, ++done[requester]; });
            }
            requested += burst;
            if (!eventually([&] { return done[requester] == requested; }))
            {
                forgotten = true;
            }
            // The next one arrives at another distance from the end of this step.
            for (int pause = time % 50; pause > 0; --pause)
            {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
        }
    };
    crowd threads{go_on, others};
    threads.join();
    ended = true;
    work.reset();
    running.join();
    REQUIRE_FALSE(forgotten);
    CHECK(steps == done[0] + done[1]);
}

TEST_CASE("a deep queue delays the other handlers of its context by a fraction of its steps", "[threads]")
{
    constexpr int each = 1'000;
    constexpr int total = each * static_cast<int>(requesters);
    asio::io_context io;
    const auto here = started(io.get_executor());
    int steps = 0;
    std::optional<int> before_other;
    const auto fill_the_queue = [&]
    {
        // Ready before the first of these functions is queued.
        asio::post(io, [&] { before_other = steps; });
        const crowd threads{[&](std::size_t)
                            {
                                for (int number = 0; number < each; ++number)
                                {
                                    here->strand.post([&] { ++steps; });
                                }
                            }};
    };
    SECTION("in a step of the context")
    {
        here->strand.post(fill_the_queue);
        io.run();
    }
    SECTION("in a call by the user, which returns before the queue is empty")
    {
        here->strand.run_step(fill_the_queue, runtime::step_origin::user);
        CHECK(steps < total / 4);
        io.run();
    }
    CHECK(steps == total);
    REQUIRE(before_other);
    CHECK(*before_other < total / 4);
}

TEST_CASE("each completion is delivered once, on a thread of the context", "[threads]")
{
    constexpr std::size_t each = 10'000;
    asio::thread_pool pool{2};
    const auto here = started(pool.get_executor());
    runtime::scheduler& strand = here->strand;
    std::vector<std::atomic<int>> delivered(each * requesters);
    std::atomic<int> elsewhere{0};
    int second_steps = 0;
    crowd threads{[&](std::size_t requester)
                  {
                      for (std::size_t number = 0; number < each; ++number)
                      {
                          std::atomic<int>& count = delivered[requester * each + number];
                          const auto complete = [&count, &elsewhere, &second_steps, &pool, &strand]
                          {
                              elsewhere += pool.get_executor().running_in_this_thread() ? 0 : 1;
                              // As a handler does that starts the next operation.
                              enter(strand, [&second_steps] { ++second_steps; });
                              ++count;
                          };
                          const auto step = [complete, &strand] { strand.after_step(complete); };
                          request(strand, number + requester, step);
                      }
                  }};
    threads.join();
    pool.wait();
    std::size_t once = 0;
    for (const std::atomic<int>& count : delivered)
    {
        once += count == 1 ? 1U : 0U;
    }
    CHECK(once == delivered.size());
    CHECK(elsewhere == 0);
    CHECK(second_steps == static_cast<int>(delivered.size()));
}

TEST_CASE(
    "a scheduler whose last owner leaves while functions are queued lives until they have run", "[threads]")
{
    constexpr int each = 20;
    for (int time = 0; time < lifetimes; ++time)
    {
        asio::thread_pool pool{2};
        std::atomic<int> ran{0};
        auto here = started(pool.get_executor());
        const std::weak_ptr<host> there = here;
        {
            const crowd threads{[here, &ran](std::size_t requester) mutable
                                {
                                    for (int number = 0; number < each; ++number)
                                    {
                                        // Not by run_step, whose caller has to keep the owner alive.
                                        request(here->strand, requester % 2, [&ran] { ++ran; });
                                    }
                                    here.reset();
                                }};
            here.reset();
        }
        pool.wait();
        REQUIRE(ran == each * static_cast<int>(requesters));
        REQUIRE(there.expired());
    }
}

TEST_CASE("functions that arrive while the context is stopped are destroyed with it", "[threads]")
{
    for (int time = 0; time < lifetimes; ++time)
    {
        auto io = std::make_unique<asio::io_context>();
        auto work = std::make_optional(asio::make_work_guard(*io));
        auto here = started(io->get_executor());
        const std::weak_ptr<host> there = here;
        const auto token = std::make_shared<int>(0);
        std::atomic<int> ran{0};
        {
            const crowd running{[&](std::size_t) { io->run(); }, 2};
            const crowd threads{[&](std::size_t requester)
                                {
                                    for (int number = 0; number < 200; ++number)
                                    {
                                        const auto step = [token, &ran] { ++ran; };
                                        if (requester % 2 == 0)
                                        {
                                            enter(here->strand, step);
                                        }
                                        else
                                        {
                                            // As a stream does: the handler keeps the owner alive.
                                            asio::post(*io, here->strand.bind(step));
                                        }
                                    }
                                }};
            CHECK(eventually([&] { return ran >= time % 300; }));
            io->stop();
        }
        here.reset();
        work.reset();
        io.reset();
        REQUIRE(token.use_count() == 1);
        REQUIRE(there.expired());
    }
}

} // namespace redlock::test
