// SPDX-License-Identifier: BSL-1.0
// Three ways to stop waiting for a lock, with error codes instead of exceptions.
#include "throwaway_servers.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

namespace asio = boost::asio;
using namespace std::chrono_literals;

void expect(bool as_told, const char* what)
{
    if (!as_told)
    {
        throw std::runtime_error{what};
    }
    std::cout << what << '\n';
}

/// The library's own limit on the wait: no round starts after it, and the error says why there is no lock.
asio::awaitable<void> wait_for_a_while(redlock::lock_manager& locks)
{
    const redlock::acquire_options impatient{.ttl = 10s, .wait = 100ms};
    const auto token = asio::as_tuple(asio::deferred);
    auto outcome = co_await locks.async_acquire("report", impatient, token);
    expect(std::get<0>(outcome) == redlock::errc::held_by_other, "after its wait: held by another");
}

/// The owner of the signal can cancel the operation for any reason. Here, a timer does.
asio::awaitable<void> cancel_by_signal(redlock::lock_manager& locks)
{
    // Shared, since the timer's handler may run after this coroutine has ended.
    const auto stop = std::make_shared<asio::cancellation_signal>();
    asio::steady_timer timer{co_await asio::this_coro::executor, 100ms};
    timer.async_wait([stop](redlock::error_code) { stop->emit(asio::cancellation_type::total); });

    const redlock::acquire_options patient{.ttl = 10s, .wait = redlock::no_limit};
    auto token = asio::bind_cancellation_slot(stop->slot(), asio::as_tuple(asio::use_awaitable));
    auto outcome = co_await locks.async_acquire("report", patient, token);
    expect(std::get<0>(outcome) == asio::error::operation_aborted, "by a signal: aborted");
}

/// Whichever completes first, the lock or the timer. The other is cancelled; a lease that is granted too late releases
/// itself. as_tuple is required: with exceptions, || would ignore a refused acquire and keep waiting for the timer.
asio::awaitable<void> cancel_by_timer(redlock::lock_manager& locks)
{
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer{co_await asio::this_coro::executor, 100ms};
    const redlock::acquire_options patient{.ttl = 10s, .wait = redlock::no_limit};
    const auto token = asio::as_tuple(asio::use_awaitable);
    auto first =
        co_await (locks.async_acquire("report", patient, token) || timer.async_wait(asio::use_awaitable));
    expect(first.index() == 1, "by ||: the timer was first");
}

/// Stands for work that takes unexpectedly long.
asio::awaitable<void> work()
{
    asio::steady_timer step{co_await asio::this_coro::executor, 1h};
    co_await step.async_wait(asio::use_awaitable);
}

asio::awaitable<void> failing_work()
{
    asio::steady_timer step{co_await asio::this_coro::executor, 10ms};
    co_await step.async_wait(asio::use_awaitable);
    throw std::runtime_error{"the work has failed"};
}

/// Work in parallel with a wait for the loss of its lease: the one that ends first, by success or by an exception, cancels
/// the other. `async_with_lock` does this, and releases the lease when the work has ended.
asio::awaitable<redlock::error_code> work_until_lost(redlock::lease& lease, asio::awaitable<void> work)
{
    const auto executor = co_await asio::this_coro::executor;
    auto both = asio::experimental::make_parallel_group(
        asio::co_spawn(executor, std::move(work), asio::deferred), lease.async_wait_lost(asio::deferred));
    const auto [order, thrown, no_loss, why] =
        co_await both.async_wait(asio::experimental::wait_for_one{}, asio::use_awaitable);
    if (order[0] == 0 && thrown)
    {
        std::rethrow_exception(thrown);
    }
    if (order[0] == 1 && no_loss)
    {
        throw redlock::system_error{no_loss}; // The wait ended without a loss, and has ended the work.
    }
    co_return why;
}

asio::awaitable<void> watch(redlock::lock_manager& locks)
{
    redlock::lease lease = co_await locks.async_acquire_kept("report", {.ttl = 10s, .max_hold = 300ms});
    bool failed = false;
    try
    {
        asio::awaitable<void> failing = failing_work();
        co_await work_until_lost(lease, std::move(failing));
    }
    catch (const std::runtime_error&)
    {
        failed = true;
    }
    expect(failed && lease.valid(), "in a group: the exception of the work ends the wait for a loss");
    asio::awaitable<void> endless = work();
    const redlock::error_code why = co_await work_until_lost(lease, std::move(endless));
    expect(why == redlock::errc::hold_limit_reached, "in a group: max_hold was reached, and ended the work");
    co_await lease.async_release(asio::as_tuple(asio::deferred));
}

asio::awaitable<void> compare(redlock::lock_manager& locks)
{
    redlock::lease held = co_await locks.async_acquire("report", 60s);
    co_await wait_for_a_while(locks);
    co_await cancel_by_signal(locks);
    co_await cancel_by_timer(locks);
    co_await held.async_release(asio::as_tuple(asio::deferred));

    co_await watch(locks);

    // No key is left by any of them.
    redlock::lease lease = co_await locks.async_try_acquire("report", 10s);
    expect(lease.valid(), "and now it can be acquired");
    co_await locks.async_shutdown(asio::as_tuple(asio::deferred));
}

void rethrow(std::exception_ptr failure)
{
    if (failure)
    {
        std::rethrow_exception(failure);
    }
}

int main()
{
    try
    {
        const std::vector<throwaway_server> servers(3);
        asio::io_context io;
        redlock::config options;
        options.masters = masters_of(servers);
        options.node_timeout = 500ms; // Ten times the default: this machine may be slow.
        redlock::lock_manager locks{io, options};
        asio::co_spawn(io, compare(locks), rethrow);
        io.run();
    }
    catch (const std::exception& failure)
    {
        std::cerr << "cancel: this was expected, but isn't so: " << failure.what() << '\n';
        return 1;
    }
}
