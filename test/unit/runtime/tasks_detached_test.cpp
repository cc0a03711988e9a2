// SPDX-License-Identifier: BSL-1.0
// Detached tasks and async events: when a coroutine runs, and what is done at the end of a step.
#include "runtime/scheduler.hpp"
#include "runtime/tasks.hpp"
#include "unit/workbench.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

namespace asio = boost::asio;
using runtime::async_event;
using runtime::detached_task;
using runtime::scheduler;

using lines = std::vector<std::string>;

detached_task wait_and_tell(scheduler&, async_event& signal, std::string name, lines& said)
{
    const std::string own = name;
    said.push_back(own + " begins");
    co_await signal;
    said.push_back(own + " ends");
}

detached_task wait_often(scheduler&, async_event& signal, int times, int& woken)
{
    for (int left = times; left > 0; --left)
    {
        co_await signal;
        ++woken;
    }
}

class counted_end final : public runtime::step_end_hook
{
  public:
    counted_end(lines& said, std::string name) : said_{said}, name_{std::move(name)} {}

    void on_step_end() override
    {
        said_.push_back(name_);
        if (async_event* next = std::exchange(then, nullptr))
        {
            next->notify();
        }
    }

    async_event* then = nullptr;

  private:
    lines& said_;
    std::string name_;
};

} // namespace

TEST_CASE("a detached task starts at once, and resumes in the step that notifies it")
{
    workbench here;
    async_event signal{here.strand};
    lines said;
    here.strand.run_step(
        [&]
        {
            wait_and_tell(here.strand, signal, "flow", said);
            said.push_back("started");
            signal.notify();
            said.push_back("notified");
        });
    CHECK(said == lines{"flow begins", "started", "notified", "flow ends"});
}

TEST_CASE("a detached task that isn't notified stays suspended")
{
    workbench here;
    async_event signal{here.strand};
    lines said;
    here.strand.run_step([&] { wait_and_tell(here.strand, signal, "flow", said); });
    here.strand.run_step([] {});
    CHECK(said == lines{"flow begins"});
    here.strand.run_step([&] { signal.notify(); });
    CHECK(said == lines{"flow begins", "flow ends"});
}

TEST_CASE("detached tasks resume in the order of their notifications")
{
    workbench here;
    async_event first{here.strand};
    async_event second{here.strand};
    lines said;
    here.strand.run_step(
        [&]
        {
            wait_and_tell(here.strand, first, "1", said);
            wait_and_tell(here.strand, second, "2", said);
            second.notify();
            first.notify();
        });
    CHECK(said == lines{"1 begins", "2 begins", "2 ends", "1 ends"});
}

TEST_CASE("a notification before the wait is kept, and several are merged into one")
{
    workbench here;
    async_event signal{here.strand};
    int woken = 0;
    signal.notify();
    signal.notify();
    here.strand.run_step([&] { wait_often(here.strand, signal, 3, woken); });
    CHECK(woken == 1);
    here.strand.run_step(
        [&]
        {
            signal.notify();
            signal.notify();
        });
    CHECK(woken == 2);
    here.strand.run_step([] {});
    CHECK(woken == 2);
    here.strand.run_step([&] { signal.notify(); });
    CHECK(woken == 3);
}

TEST_CASE("a notification without a waiting task has no effect")
{
    workbench here;
    async_event signal{here.strand};
    int woken = 0;
    here.strand.run_step([&] { wait_often(here.strand, signal, 1, woken); });
    here.strand.run_step([&] { signal.notify(); });
    here.strand.run_step([&] { signal.notify(); });
    CHECK(woken == 1);
}

TEST_CASE("an event that is destroyed between its notification and the end of the step removes itself")
{
    workbench here;
    lines said;
    {
        workbench there;
        auto signal = std::make_unique<async_event>(there.strand);
        there.strand.run_step(
            [&]
            {
                wait_and_tell(there.strand, *signal, "flow", said);
                signal->notify();
                there.strand.destroy_detached_tasks();
                signal.reset();
            });
    }
    CHECK(said == lines{"flow begins"});
}

TEST_CASE("end-of-step work runs once per step, after the coroutines, and is repeated until none is left")
{
    workbench here;
    async_event signal{here.strand};
    async_event second{here.strand};
    lines said;
    counted_end write{said, "write"};
    here.strand.run_step(
        [&]
        {
            here.strand.at_step_end(write);
            here.strand.at_step_end(write);
            wait_and_tell(here.strand, signal, "1", said);
            wait_and_tell(here.strand, second, "2", said);
            signal.notify();
            write.then = &second;
        });
    CHECK(said == lines{"1 begins", "2 begins", "1 ends", "write", "2 ends"});
    here.strand.run_step([] {});
    CHECK(said.size() == 5);
    here.strand.run_step([&] { here.strand.at_step_end(write); });
    CHECK(said.size() == 6);
}

} // namespace redlock::test
