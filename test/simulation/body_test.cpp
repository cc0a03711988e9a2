// SPDX-License-Identifier: BSL-1.0
// Tests of a body that runs under a lock: its result, its exceptions, and its memory.
#include "bodies.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

namespace
{

struct allocations
{
    std::size_t made = 0;
    std::size_t freed = 0;
};

/// Allocates from the heap, and counts allocations.
template <class T>
struct counting_allocator
{
    using value_type = T;
    explicit counting_allocator(allocations& of) : counted{&of} {}
    template <class Other>
    counting_allocator(const counting_allocator<Other>& other) : counted{other.counted}
    {
    }

    T* allocate(std::size_t count)
    {
        ++counted->made;
        return std::allocator<T>{}.allocate(count);
    }
    void deallocate(T* pointer, std::size_t count)
    {
        ++counted->freed;
        std::allocator<T>{}.deallocate(pointer, count);
    }
    template <class Other>
    bool operator==(const counting_allocator<Other>& other) const
    {
        return counted == other.counted;
    }

    allocations* counted;
};

/// A result type with as few operations as possible.
struct ticket
{
    explicit ticket(int value) : number{std::make_unique<int>(value)} {}

    std::unique_ptr<int> number;
};

} // namespace

TEST_CASE("an exception of a body is passed on unchanged, even after a loss or a failed release")
{
    const bool lost = GENERATE(false, true);
    const bool confirmed = GENERATE(true, false);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    job body{.throws = std::make_exception_ptr(std::runtime_error{"mine"})};
    body.works = lost ? body.works : clock::duration{1s};
    const outcome_ptr work = begun(sim, locks, body, {.ttl = 10s, .max_hold = 5s});
    sim.run_for(100ms);
    if (!confirmed)
    {
        hang_all(sim);
    }
    REQUIRE(sim.finish(work));
    CHECK((body.cancelled_at != clock::time_point{}) == lost);
    REQUIRE(work->thrown);
    CHECK(is_its_own(work->thrown));
}

TEST_CASE("the result of a body is passed on, even if the release can't be confirmed")
{
    const bool confirmed = GENERATE(true, false);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto body = [&sim](redlock::lease&) -> asio::awaitable<std::string>
    {
        std::string result = "done";
        co_await sim.pause(1s);
        co_return result;
    };
    std::exception_ptr thrown = std::make_exception_ptr(std::runtime_error{"mine"});
    std::string result;
    auto done = [&](std::exception_ptr what, std::string returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s}, body, done);
    sim.run_for(900ms);
    if (!confirmed)
    {
        hang_all(sim);
    }
    sim.run_for(200ms);
    CHECK(!thrown);
    CHECK(result == "done");
    CHECK(sim.run_until_no_keys(confirmed ? 0s : 10s));
}

TEST_CASE("a body receives a cancellation of the type that was emitted, and may ignore it")
{
    const asio::cancellation_type emitted = GENERATE(
        asio::cancellation_type::partial, asio::cancellation_type::total, asio::cancellation_type::terminal);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    std::vector<asio::cancellation_type> received;
    const auto body = [&](redlock::lease&) -> asio::awaitable<std::string>
    {
        const auto ignore = [&](asio::cancellation_type type) noexcept
        {
            received.push_back(type);
            return asio::cancellation_type::none;
        };
        co_await asio::this_coro::reset_cancellation_state(ignore, asio::disable_cancellation{});
        co_await sim.pause(1s);
        co_return "done";
    };
    std::exception_ptr thrown = std::make_exception_ptr(std::runtime_error{"mine"});
    std::string result;
    auto done = [&](std::exception_ptr what, std::string returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    asio::cancellation_signal cancel;
    locks.async_with_lock(
        "stock", {.ttl = 10s, .max_hold = 5s}, body, asio::bind_cancellation_slot(cancel.slot(), done));
    sim.run_for(500ms);
    REQUIRE(received.empty());
    cancel.emit(emitted);
    sim.run_for(100ms);
    CHECK(received == std::vector{emitted});
    CHECK(result.empty());
    sim.run_for(1s);
    CHECK_FALSE(thrown);
    CHECK(result == "done");
}

TEST_CASE("a body may return a type without copy and default constructor, and take no argument")
{
    const bool held_by_other = GENERATE(false, true);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    if (held_by_other)
    {
        sim.master(0).set("lock:stock", "another", 1h);
        sim.master(1).set("lock:stock", "another", 1h);
    }
    const auto body = []() -> asio::awaitable<ticket>
    {
        ticket result{42};
        co_return result;
    };
    std::exception_ptr thrown;
    std::optional<ticket> result;
    auto done = [&](std::exception_ptr what, std::optional<ticket> returned)
    {
        thrown = what;
        result = std::move(returned);
    };
    locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s, .max_rounds = 1}, body, done);
    sim.run_for(1s);
    CHECK(!thrown == !held_by_other);
    REQUIRE(result.has_value() == !held_by_other);
    CHECK((held_by_other || *result->number == 42));
}

TEST_CASE("a body without a token gives its result to the coroutine that awaits it")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const auto body = [](redlock::lease& held) -> asio::awaitable<std::string>
    {
        std::string result{held.resource()};
        co_return result;
    };
    const auto ticket_body = []() -> asio::awaitable<ticket>
    {
        ticket result{42};
        co_return result;
    };
    std::string resource;
    std::optional<ticket> number;
    const auto run = [&]() -> asio::awaitable<void>
    {
        resource = co_await locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 5s}, body);
        number = co_await locks.async_with_lock("s", {.ttl = 10s, .max_hold = 5s}, ticket_body);
    };
    bool done = false;
    auto ended = [&](std::exception_ptr thrown) { done = !thrown; };
    asio::awaitable<void> running = run();
    asio::co_spawn(locks.get_executor(), std::move(running), ended);
    REQUIRE(sim.run_until([&] { return done; }, 1s));
    CHECK(resource == "stock");
    CHECK(*number.value().number == 42);
}

TEST_CASE("an operation with a body has its memory from its handler's allocator, and returns it before it is "
          "called")
{
    const bool held_by_other = GENERATE(false, true);
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    if (held_by_other)
    {
        sim.master(0).set("lock:stock", "another", 1h);
        sim.master(1).set("lock:stock", "another", 1h);
    }
    allocations counted;
    bool done = false;
    std::size_t left = 0;
    auto handler = [&](std::exception_ptr)
    {
        done = true;
        left = counted.made - counted.freed;
    };
    const auto body = [&](redlock::lease&) -> asio::awaitable<void> { co_await sim.pause(1s); };
    // The signal may outlive the operation and its memory.
    asio::cancellation_signal cancel;
    const keep_options with{.ttl = 10s, .max_hold = 5s, .max_rounds = 1};
    auto cancellable = asio::bind_cancellation_slot(cancel.slot(), std::move(handler));
    locks.async_with_lock(
        "stock", with, body,
        asio::bind_allocator(counting_allocator<void*>{counted}, std::move(cancellable)));
    REQUIRE(sim.run_until([&] { return done; }, 2s));
    // For the operation itself and the acquire; then for the loss and the release.
    CHECK(counted.made >= (held_by_other ? 2U : 4U));
    CHECK(left == 0);
    CHECK(counted.made == counted.freed);
    cancel.emit(asio::cancellation_type::terminal);
    CHECK_NOTHROW(sim.run_for(1s));
}
TEST_CASE("a body that throws before its first suspension releases its lease")
{
    simulation sim{3};
    lock_manager locks = sim.make_connected_manager();
    const bool in_coroutine = GENERATE(true, false);
    const auto work = [](redlock::lease&) -> asio::awaitable<void>
    {
        const bool always = true;
        if (always)
        {
            throw std::runtime_error{"mine"};
        }
        co_return;
    };
    const auto body = [&](redlock::lease& held)
    {
        if (!in_coroutine)
        {
            throw std::runtime_error{"mine"};
        }
        return work(held);
    };
    std::exception_ptr thrown;
    locks.async_with_lock(
        "stock", {.ttl = 10s, .max_hold = 5s}, body, [&](std::exception_ptr what) { thrown = what; });
    CHECK_NOTHROW(sim.run_for(1s));
    CHECK(sim.keys() == 0);
    REQUIRE(thrown);
    CHECK(is_its_own(thrown));
}

} // namespace redlock::test
