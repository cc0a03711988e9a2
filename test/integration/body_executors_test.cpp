// SPDX-License-Identifier: BSL-1.0
// Where a body runs: on a strand, whatever the executor of its handler guarantees. With real masters and thread pools.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// g++ doesn't match the operator new of an awaitable's promise with its operator delete.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

// Each ends by max_hold: the loss comes from another thread while the body is running.
constexpr keep_options soon_lost{.ttl = long_ttl, .max_hold = 5ms, .wait = redlock::no_limit};
constexpr keep_options held{.ttl = long_ttl, .max_hold = redlock::no_limit, .wait = redlock::no_limit};
constexpr std::size_t jobs_at_once = 8;
constexpr std::size_t jobs_in_a_row = 12;

/// Keeps its executor busy with several concurrent waits until it is cancelled. The counter is protected only by the
/// executor of the body.
asio::awaitable<void> busy_body(redlock::lease& lease)
{
    const auto steps = std::make_shared<std::size_t>(0);
    asio::steady_timer pause{co_await asio::this_coro::executor};
    while (lease.valid() || *steps == 0)
    {
        pause.expires_after(100us);
        pause.async_wait([steps](error_code) { ++*steps; });
        co_await pause.async_wait(asio::use_awaitable);
        ++*steps;
    }
}

/// Computes in another pool until its lease ends, and ends there.
struct wandering_body
{
    asio::any_io_executor elsewhere;

    asio::awaitable<void> operator()(redlock::lease& lease) const
    {
        auto there = asio::bind_executor(elsewhere, asio::use_awaitable);
        co_await asio::post(std::move(there));
        while (lease.valid())
        {
            std::this_thread::yield();
        }
    }
};

/// Allocates from the heap and counts the blocks in use.
template <class T>
struct block_allocator
{
    using value_type = T;
    explicit block_allocator(std::atomic<int>& of) : blocks{&of} {}
    template <class Other>
    block_allocator(const block_allocator<Other>& other) : blocks{other.blocks}
    {
    }

    T* allocate(std::size_t count)
    {
        ++*blocks;
        return std::allocator<T>{}.allocate(count);
    }
    void deallocate(T* pointer, std::size_t count)
    {
        std::allocator<T>{}.deallocate(pointer, count);
        --*blocks;
    }
    template <class Other>
    bool operator==(const block_allocator<Other>& other) const
    {
        return blocks == other.blocks;
    }

    std::atomic<int>* blocks;
};

/// Counts the jobs that have ended, on any thread.
struct row
{
    lock_manager& locks;
    std::string resource;
    std::promise<std::size_t> ended{};
    std::size_t lost = 0;
    std::size_t count = 0;

    bool add(const error_code& error)
    {
        lost += error == errc::hold_limit_reached ? 1U : 0U;
        return ++count < jobs_in_a_row;
    }
};

void run_with_callbacks(const std::shared_ptr<row>& job, const asio::any_io_executor& on)
{
    const auto done = [job, on](std::exception_ptr thrown)
    {
        if (job->add(error_of(thrown)))
        {
            run_with_callbacks(job, on);
            return;
        }
        job->ended.set_value(job->lost);
    };
    job->locks.async_with_lock(job->resource, soon_lost, busy_body, asio::bind_executor(on, done));
}

asio::awaitable<std::size_t> run_as_coroutine(lock_manager& locks, std::string resource)
{
    std::size_t lost = 0;
    for (std::size_t count = 0; count < jobs_in_a_row; ++count)
    {
        error_code error;
        try
        {
            co_await locks.async_with_lock(resource, soon_lost, busy_body);
        }
        catch (const system_error& thrown)
        {
            error = thrown.code();
        }
        lost += error == errc::hold_limit_reached ? 1U : 0U;
    }
    co_return lost;
}

std::size_t run_with_futures(lock_manager& locks, const std::string& resource)
{
    std::size_t lost = 0;
    for (std::size_t count = 0; count < jobs_in_a_row; ++count)
    {
        std::future<void> job = locks.async_with_lock(resource, soon_lost, busy_body, asio::use_future);
        try
        {
            take(std::move(job), "a job");
        }
        catch (const system_error& thrown)
        {
            lost += thrown.code() == errc::hold_limit_reached ? 1U : 0U;
        }
    }
    return lost;
}

} // namespace

TEST_CASE(
    "bodies of callbacks, coroutines and futures run on strands in a thread pool [scenario-95]",
    "[threads][scenario-95]")
{
    std::vector<server> servers = start_servers(3);
    asio::thread_pool pool{4};
    lock_manager locks{pool, unhurried(servers)};

    std::vector<std::future<std::size_t>> rows;
    for (std::size_t index = 0; index < jobs_at_once; ++index)
    {
        const std::string name = std::to_string(index);
        auto job = std::make_shared<row>(row{locks, "callback " + name});
        rows.push_back(job->ended.get_future());
        run_with_callbacks(job, pool.get_executor());
        asio::awaitable<std::size_t> coroutine = run_as_coroutine(locks, "coroutine " + name);
        rows.push_back(asio::co_spawn(pool, std::move(coroutine), asio::use_future));
        rows.push_back(std::async(
            std::launch::async, [&locks, name] { return run_with_futures(locks, "future " + name); }));
    }
    for (std::future<std::size_t>& each : rows)
    {
        CHECK(take(std::move(each), "a row of jobs") == jobs_in_a_row);
    }
    CHECK_FALSE(shut_down(locks));
    pool.join();
}

TEST_CASE(
    "bodies of callbacks, coroutines and futures run on strands in an io_context with four threads",
    "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers), 4, log_of::masters};
    lock_manager& locks = own.locks();

    std::vector<std::future<std::size_t>> rows;
    for (std::size_t index = 0; index < jobs_at_once; ++index)
    {
        const std::string name = std::to_string(index);
        auto job = std::make_shared<row>(row{locks, "callback " + name});
        rows.push_back(job->ended.get_future());
        run_with_callbacks(job, own.loop().context().get_executor());
        asio::awaitable<std::size_t> coroutine = run_as_coroutine(locks, "coroutine " + name);
        rows.push_back(asio::co_spawn(own.loop().context(), std::move(coroutine), asio::use_future));
        rows.push_back(std::async(
            std::launch::async, [&locks, name] { return run_with_futures(locks, "future " + name); }));
    }
    for (std::future<std::size_t>& each : rows)
    {
        CHECK(take(std::move(each), "a row of jobs") == jobs_in_a_row);
    }
}

TEST_CASE(
    "a body of use_future runs in the manager's context, and its future is ready after the release",
    "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 1, log_of::masters};
    std::thread::id ran_on;
    asio::execution_context* context = nullptr;
    const auto body = [&]() -> asio::awaitable<std::string>
    {
        const asio::any_io_executor here = co_await asio::this_coro::executor;
        context = &asio::query(here, asio::execution::context);
        ran_on = std::this_thread::get_id();
        co_return "done";
    };
    CHECK(take(own.locks().async_with_lock("stock", held, body, asio::use_future), "a body") == "done");
    CHECK(servers[0].command({"EXISTS", "lock:stock"}) == 0);
    CHECK(context == &own.loop().context());
    std::promise<std::thread::id> loops_thread;
    asio::post(own.loop().context(), [&] { loops_thread.set_value(std::this_thread::get_id()); });
    CHECK(ran_on == loops_thread.get_future().get());
}

TEST_CASE(
    "an operation started from outside its pool has deallocated its memory before its handler is called",
    "[threads]")
{
    asio::thread_pool pool{1};
    redlock::lock_manager locks{pool, "redis://127.0.0.1:1"};
    const keep_options refused{.ttl = 0ms, .max_hold = 1s};
    const auto body = []() -> asio::awaitable<void> { co_return; };
    int late = 0;
    for (int time = 0; time < 1000; ++time)
    {
        std::atomic<int> blocks = 0;
        // Shared with the handler, which may still be in set_value when this thread has the value.
        const auto left = std::make_shared<std::promise<int>>();
        auto handler = [&blocks, left](const std::exception_ptr&) { left->set_value(blocks); };
        locks.async_with_lock(
            "stock", refused, body, asio::bind_allocator(block_allocator<void*>{blocks}, handler));
        late += left->get_future().get() == 0 ? 0 : 1;
        while (blocks != 0)
        {
            std::this_thread::yield();
        }
    }
    CHECK(late == 0);
}

TEST_CASE(
    "a body whose handler is bound to a strand runs on that strand, and so does the handler", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 4, log_of::masters};
    const auto strand = asio::make_strand(own.loop().context());
    std::vector<bool> inside;
    std::promise<void> ended;
    const auto body = [&]() -> asio::awaitable<void>
    {
        asio::steady_timer pause{co_await asio::this_coro::executor, 1ms};
        inside.push_back(strand.running_in_this_thread());
        co_await pause.async_wait(asio::use_awaitable);
        inside.push_back(strand.running_in_this_thread());
    };
    const auto done = [&](std::exception_ptr thrown)
    {
        inside.push_back(strand.running_in_this_thread() && !thrown);
        ended.set_value();
    };
    own.locks().async_with_lock("stock", held, body, asio::bind_executor(strand, done));
    take(ended.get_future(), "the handler");
    CHECK(inside == std::vector<bool>(3, true));
}

TEST_CASE(
    "bodies that end in another pool, just as their leases do, end with the reason",
    "[threads][scenario-114]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 1, log_of::masters};
    asio::thread_pool pool{2};
    asio::thread_pool elsewhere{2};
    const wandering_body body{elsewhere.get_executor()};
    for (std::size_t count = 0; count < jobs_in_a_row; ++count)
    {
        std::vector<std::future<error_code>> jobs;
        for (std::size_t index = 0; index < 2; ++index)
        {
            const auto ended = std::make_shared<std::promise<error_code>>();
            jobs.push_back(ended->get_future());
            own.locks().async_with_lock(
                std::to_string(index), soon_lost, body,
                asio::bind_executor(
                    pool.get_executor(),
                    [ended](std::exception_ptr thrown) { ended->set_value(error_of(thrown)); }));
        }
        for (std::future<error_code>& each : jobs)
        {
            CHECK(take(std::move(each), "a job") == errc::hold_limit_reached);
        }
    }
    CHECK_FALSE(shut_down(own.locks()));
    pool.join();
    elsewhere.join();
}

TEST_CASE("a body that ends on another executor is released on its strand", "[threads][scenario-114]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 1, log_of::masters};
    asio::io_context home;
    asio::io_context elsewhere;
    bool began = false;
    bool ended = false;
    const auto body = [&]() -> asio::awaitable<void>
    {
        began = true;
        auto there = asio::bind_executor(elsewhere.get_executor(), asio::use_awaitable);
        co_await asio::post(std::move(there));
    };
    own.locks().async_with_lock(
        "stock", held, body,
        asio::bind_executor(home.get_executor(), [&](std::exception_ptr thrown) { ended = !thrown; }));
    while (!began)
    {
        home.run_one_for(patience);
    }
    CHECK(elsewhere.run() > 0);
    // A release that the other thread had started would have been sent before this.
    const auto found = take(own.locks().async_inspect("stock", asio::use_future), "an inspection");
    CHECK(found.masters().front().has_key);
    home.run_for(patience);
    CHECK(ended);
    CHECK(servers[0].command({"EXISTS", "lock:stock"}) == 0);
}

TEST_CASE("a body that sees its loss while it keeps its thread busy ends with the reason", "[threads]")
{
    std::vector<server> servers = start_servers(1);
    client own{unhurried(servers), 1, log_of::masters};
    asio::thread_pool pool{1};
    bool began = false;
    bool was_early = false;
    // The notification of the loss is queued behind it.
    const auto body = [&](redlock::lease& lease) -> asio::awaitable<void>
    {
        began = true;
        while (lease.valid())
        {
            std::this_thread::yield();
        }
        was_early = lease.valid_until() > redlock::clock::now();
        co_return;
    };
    // On a busy machine a lease is lost before its body begins.
    std::chrono::milliseconds longer = 5ms;
    while (!began)
    {
        const auto ended = std::make_shared<std::promise<error_code>>();
        std::future<error_code> job = ended->get_future();
        own.locks().async_with_lock(
            "stock", {.ttl = long_ttl, .max_hold = longer, .wait = redlock::no_limit}, body,
            asio::bind_executor(
                pool.get_executor(),
                [ended](std::exception_ptr thrown) { ended->set_value(error_of(thrown)); }));
        CHECK(take(std::move(job), "the handler") == errc::hold_limit_reached);
        longer *= 2;
    }
    CHECK(was_early);
    pool.join();
}

TEST_CASE(
    "cancelling a body from the executor of its handler stops it while a thread pool runs it", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    asio::thread_pool pool{4};
    lock_manager locks{pool, unhurried(servers)};
    for (std::size_t count = 0; count < 50; ++count)
    {
        CAPTURE(count);
        const auto strand = asio::make_strand(pool);
        asio::cancellation_signal stop;
        std::promise<error_code> ended;
        const auto done = [&](std::exception_ptr thrown) { ended.set_value(error_of(thrown)); };
        // The signal may only be used on the executor of the handler.
        asio::post(
            strand,
            [&]
            {
                auto cancellable = asio::bind_cancellation_slot(stop.slot(), done);
                locks.async_with_lock(
                    "stock", held, busy_body, asio::bind_executor(strand, std::move(cancellable)));
            });
        std::this_thread::sleep_for(count * 20us); // At an arbitrary point.
        asio::post(strand, [&] { stop.emit(asio::cancellation_type::terminal); });
        CHECK(take(ended.get_future(), "a cancelled body") == asio::error::operation_aborted);
        std::promise<void> gone;
        asio::post(strand, [&] { gone.set_value(); });
        take(gone.get_future(), "the strand");
    }
    CHECK_FALSE(shut_down(locks));
    pool.join();
}

} // namespace redlock::test
