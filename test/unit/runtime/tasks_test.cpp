// SPDX-License-Identifier: BSL-1.0
// Tasks and coroutine frames: they are destroyed with everything they hold, however they end.
#include "runtime/scheduler.hpp"
#include "runtime/tasks.hpp"
#include "unit/workbench.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <memory>

namespace redlock::test
{

namespace
{

namespace asio = boost::asio;
using runtime::async_event;
using runtime::detached_task;
using runtime::scheduler;
using runtime::task;

/// Counts its instances.
struct guest
{
    explicit guest(int& count) noexcept : count_{count} { ++count_; }
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;
    ~guest() { --count_; }

  private:
    int& count_;
};

task<int> plus_one_after(scheduler&, async_event& signal, int value, int& guests)
{
    const guest here{guests};
    co_await signal;
    co_return value + 1;
}

task<int> plus_two_after(scheduler& strand, async_event& signal, int value, int& guests)
{
    const guest here{guests};
    const int between = co_await plus_one_after(strand, signal, value, guests);
    const int last = co_await plus_one_after(strand, signal, between, guests);
    co_return last;
}

detached_task sum_up(scheduler& strand, async_event& signal, int& result, int& guests)
{
    const guest here{guests};
    const int value = co_await plus_two_after(strand, signal, 40, guests);
    result = value;
}

task<std::unique_ptr<int>> only_movable(scheduler&)
{
    auto value = std::make_unique<int>(7);
    co_return value;
}

detached_task take_only_movable(scheduler& strand, int& result)
{
    const std::unique_ptr<int> value = co_await only_movable(strand);
    result = *value;
}

detached_task make_task_only(scheduler& strand, async_event& signal, int& guests)
{
    const task<int> never_awaited = plus_one_after(strand, signal, 1, guests);
    co_await signal;
}

// Without local variables: g++ 12.1 and 12.2 are known to miscompile these.
detached_task bare_detached_task(scheduler&, async_event& signal, int& ended)
{
    co_await signal;
    ++ended;
}

task<int> bare_task(scheduler&, async_event& signal)
{
    co_await signal;
    co_return 5;
}

task<int> bare_ready_task(scheduler&)
{
    co_return 6;
}

detached_task bare_awaiter(scheduler& strand, async_event& signal, int& sum)
{
    sum += co_await bare_task(strand, signal);
    sum += co_await bare_ready_task(strand);
}

/// Has the scheduler as a member, as connections and operations do; its coroutines are members, too.
class task_owner
{
  public:
    explicit task_owner(scheduler& strand) : strand_{strand}, signal_{strand} {}

    scheduler& strand() noexcept { return strand_; }
    detached_task run(int& result)
    {
        const int value = co_await answer();
        result = value;
    }
    void notify() noexcept { signal_.notify(); }

  private:
    task<int> answer()
    {
        const int value = 42;
        co_await signal_;
        co_return value;
    }

    scheduler& strand_;
    async_event signal_;
};

} // namespace

TEST_CASE("a task runs when it is awaited and passes its result on, through several levels")
{
    workbench here;
    async_event signal{here.strand};
    int result = 0;
    int guests = 0;
    here.strand.run_step([&] { sum_up(here.strand, signal, result, guests); });
    CHECK(guests == 3);
    here.strand.run_step([&] { signal.notify(); });
    CHECK(result == 0);
    CHECK(guests == 3);
    here.strand.run_step([&] { signal.notify(); });
    CHECK(result == 42);
    CHECK(guests == 0);
}

TEST_CASE("a task can return a move-only type")
{
    workbench here;
    int result = 0;
    here.strand.run_step([&] { take_only_movable(here.strand, result); });
    CHECK(result == 7);
}

TEST_CASE("a task that is never awaited never starts, and is destroyed with its owner")
{
    workbench here;
    async_event signal{here.strand};
    int guests = 0;
    here.strand.run_step([&] { make_task_only(here.strand, signal, guests); });
    CHECK(guests == 0);
    here.strand.run_step([&] { signal.notify(); });
    CHECK(guests == 0);
}

TEST_CASE("detached tasks and tasks can be members of a class that has the scheduler")
{
    workbench here;
    task_owner member{here.strand};
    int result = 0;
    here.strand.run_step([&] { member.run(result); });
    here.strand.run_step([&] { member.notify(); });
    CHECK(result == 42);
}

TEST_CASE("destroying the detached tasks destroys the tasks that are suspended in them, with their variables")
{
    workbench here;
    async_event signal{here.strand};
    int result = 0;
    int guests = 0;
    here.strand.run_step([&] { sum_up(here.strand, signal, result, guests); });
    async_event other{here.strand};
    here.strand.run_step([&] { sum_up(here.strand, other, result, guests); });
    CHECK(guests == 6);
    here.strand.destroy_detached_tasks();
    CHECK(guests == 0);
    CHECK(result == 0);
    here.strand.destroy_detached_tasks();
    CHECK(guests == 0);
}

TEST_CASE("a scheduler destroys its detached tasks")
{
    int result = 0;
    int guests = 0;
    {
        workbench here;
        async_event signal{here.strand};
        here.strand.run_step([&] { sum_up(here.strand, signal, result, guests); });
        CHECK(guests == 3);
    }
    CHECK(guests == 0);
}

TEST_CASE("a detached task that has ended isn't destroyed twice")
{
    workbench here;
    async_event signal{here.strand};
    int result = 0;
    int guests = 0;
    here.strand.run_step([&] { sum_up(here.strand, signal, result, guests); });
    here.strand.run_step([&] { signal.notify(); });
    here.strand.run_step([&] { signal.notify(); });
    CHECK(result == 42);
    here.strand.destroy_detached_tasks();
    CHECK(guests == 0);
}

TEST_CASE("coroutines without local variables run to their end")
{
    workbench here;
    async_event signal{here.strand};
    int ended = 0;
    for (int turn = 1; turn <= 100; ++turn)
    {
        here.strand.run_step([&] { bare_detached_task(here.strand, signal, ended); });
        here.strand.run_step([&] { signal.notify(); });
        REQUIRE(ended == turn);
    }
    int sum = 0;
    here.strand.run_step([&] { bare_awaiter(here.strand, signal, sum); });
    CHECK(sum == 0);
    here.strand.run_step([&] { signal.notify(); });
    CHECK(sum == 11);
}

TEST_CASE("coroutines without local variables can be destroyed while they are suspended")
{
    workbench here;
    int ended = 0;
    int sum = 0;
    for (int turn = 0; turn < 100; ++turn)
    {
        async_event signal{here.strand};
        async_event other{here.strand};
        here.strand.run_step(
            [&]
            {
                bare_detached_task(here.strand, signal, ended);
                bare_awaiter(here.strand, other, sum);
            });
        here.strand.destroy_detached_tasks();
    }
    CHECK(ended == 0);
    CHECK(sum == 0);
}

} // namespace redlock::test
