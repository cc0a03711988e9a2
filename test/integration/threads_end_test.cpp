// SPDX-License-Identifier: BSL-1.0
// A manager that another thread destroys, shuts down or stops while operations of many threads are in flight.
#include "integration/fixture.hpp"
#include "integration/tally.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// g++ doesn't match the operator new of an awaitable's promise with its operator delete.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace redlock::test
{

namespace
{

const error_code aborted_by_its_end = asio::error::operation_aborted;

/// The errors that the end of the manager may cause, besides success.
struct documented_errors
{
    std::vector<error_code> of_acquire;
    std::vector<error_code> of_lease; // Extensions, releases, waits for the loss, bodies.

    static bool has(const std::vector<error_code>& errors, const error_code& error)
    {
        return !error || std::find(errors.begin(), errors.end(), error) != errors.end();
    }
};

/// Waits until it is cancelled.
asio::awaitable<void> endless_body(lease&)
{
    asio::steady_timer never{co_await asio::this_coro::executor};
    never.expires_at(asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

/// What the users of one manager share.
struct lease_users
{
    tally& count;
    documented_errors documented;
};

/// Uses leases until the manager has ended. Each operation is started by the handler of the one before it.
class lease_user : public std::enable_shared_from_this<lease_user>
{
  public:
    lease_user(lease_users& shared, place at, std::string resource, std::size_t index)
        : shared_{shared}, at_{std::move(at)}, resource_{std::move(resource)}, index_{index}
    {
    }

    /// Starts its first operations. The manager isn't needed any more afterwards.
    void begin(lock_manager& locks)
    {
        shared_.count.start(
            at_, [&](auto handler) { locks.async_inspect(resource_, std::move(handler)); },
            [self = shared_from_this()](error_code error, const inspection&)
            { self->expect(self->shared_.documented.of_acquire, error); });
        if (index_ % 4 == 0)
        {
            const keep_options kept{
                .ttl = long_ttl, .max_hold = redlock::no_limit, .wait = redlock::no_limit};
            shared_.count.start(
                at_,
                [&](auto handler)
                { locks.async_with_lock(resource_, kept, endless_body, std::move(handler)); },
                [self = shared_from_this()](const std::exception_ptr& thrown) { self->expect_end(thrown); });
            return;
        }
        shared_.count.start(
            at_,
            [&](auto handler)
            {
                // Cancelled later, wherever the operation or its manager is.
                locks.async_acquire(
                    resource_, acquire_options{.ttl = long_ttl, .wait = redlock::no_limit},
                    asio::bind_cancellation_slot(stop_.slot(), std::move(handler)));
            },
            [self = shared_from_this()](error_code error, lease won)
            { self->on_acquired(error, std::move(won)); });
    }

    /// Emits its signal. Must be called on its executor.
    void cancel() { stop_.emit(asio::cancellation_type::terminal); }
    const place& at() const { return at_; }

  private:
    void expect(const std::vector<error_code>& documented, const error_code& error)
    {
        shared_.count.expect(documented_errors::has(documented, error));
    }

    void expect_end(const std::exception_ptr& thrown)
    {
        error_code code;
        try
        {
            if (thrown)
            {
                std::rethrow_exception(thrown);
            }
        }
        catch (const system_error& error)
        {
            code = error.code();
        }
        shared_.count.expect(code && documented_errors::has(shared_.documented.of_lease, code));
    }

    void on_acquired(error_code error, lease won)
    {
        expect(shared_.documented.of_acquire, error);
        if (error)
        {
            return;
        }
        held_ = std::move(won);
        start(
            [&](auto handler) { held_.async_wait_lost(std::move(handler)); },
            [self = shared_from_this()](error_code why_not, error_code why)
            {
                self->expect(self->shared_.documented.of_lease, why_not);
                self->shared_.count.expect(!why);
            });
        extend_it();
    }

    void extend_it()
    {
        start(
            [&](auto handler) { held_.async_extend(long_ttl, std::move(handler)); },
            [self = shared_from_this()](error_code failed)
            {
                self->expect(self->shared_.documented.of_lease, failed);
                if (!failed)
                {
                    self->extend_it();
                }
                else if (self->index_ % 2 == 0)
                {
                    self->give_back();
                }
                else
                {
                    self->held_ = {};
                }
            });
    }

    void give_back()
    {
        start(
            [&](auto handler) { held_.async_release(std::move(handler)); },
            [self = shared_from_this()](error_code failed)
            { self->expect(self->shared_.documented.of_lease, failed); });
    }

    template <class Initiate, class Then>
    void start(Initiate initiate, Then then)
    {
        shared_.count.start(at_, std::move(initiate), std::move(then));
    }

    lease_users& shared_;
    place at_;
    std::string resource_;
    std::size_t index_;
    lease held_;
    asio::cancellation_signal stop_;
};

constexpr std::size_t many = 16;

/// Starts the users, each on its own strand, from several threads.
std::vector<std::shared_ptr<lease_user>>
begin_all(lock_manager& locks, lease_users& shared, asio::thread_pool& pool, const std::string& prefix)
{
    std::vector<std::shared_ptr<lease_user>> all;
    std::vector<std::future<void>> begun;
    for (std::size_t index = 0; index < many; ++index)
    {
        // Two compete for each resource: one waits until the end.
        auto one = std::make_shared<lease_user>(
            shared, place_of(asio::make_strand(pool)), prefix + std::to_string(index / 2), index);
        all.push_back(one);
        begun.push_back(
            asio::post(one->at().executor, asio::use_future([one, &locks] { one->begin(locks); })));
    }
    for (std::future<void>& each : begun)
    {
        take(std::move(each), "the start of an operation");
    }
    return all;
}

void cancel_every_third(const std::vector<std::shared_ptr<lease_user>>& all)
{
    for (std::size_t index = 1; index < all.size(); index += 3)
    {
        asio::post(all[index]->at().executor, [one = all[index]] { one->cancel(); });
    }
}

} // namespace

TEST_CASE("a manager may be destroyed on any thread while others use its leases", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    for (int time = 0; time < 40; ++time)
    {
        asio::thread_pool pool{2};
        tally count;
        lease_users shared{count, {{aborted_by_its_end}, {aborted_by_its_end, errc::closed}}};
        client own{unhurried(servers), 2};
        std::vector<lease> leases;
        for (int index = 0; index < 10; ++index)
        {
            leases.push_back(own.win(std::to_string(time) + "/own" + std::to_string(index)));
        }
        auto all = begin_all(own.locks(), shared, pool, std::to_string(time) + "/");
        count.wait_until_ended(static_cast<std::size_t>(10 * time));
        std::thread dropper{[&leases] { leases.clear(); }};
        std::thread canceller{[&all] { cancel_every_third(all); }};
        own.destroy_manager();
        dropper.join();
        canceller.join();
        count.wait_until_all_ended();
        // The last references to some leases are dropped here.
        all.clear();
        pool.join();
        CHECK(count.wrong() == 0);
        CHECK(count.dropped() == 0);
    }
}

TEST_CASE("a manager may be shut down on any thread while others use it", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    for (int time = 0; time < 40; ++time)
    {
        const std::string prefix = std::to_string(time) + "/";
        asio::thread_pool pool{2};
        tally count;
        lease_users shared{
            count, {{aborted_by_its_end, errc::closed}, {aborted_by_its_end, errc::closed, errc::not_held}}};
        client own{unhurried(servers), 2};
        own.wait_for_masters();
        auto all = begin_all(own.locks(), shared, pool, prefix);
        count.wait_until_ended(static_cast<std::size_t>(10 * time));
        std::thread latecomer{
            [&]
            {
                // Until the shutdown has begun.
                std::size_t number = 0;
                while (!own.acquire(prefix + "late" + std::to_string(number++), {.ttl = long_ttl}).error)
                {
                }
            }};
        std::thread canceller{[&all] { cancel_every_third(all); }};
        std::future<error_code> first = start_shutdown(own.locks());
        std::future<error_code> second = start_shutdown(own.locks());
        CHECK_FALSE(take(std::move(first), "the first shutdown"));
        CHECK(take(std::move(second), "the second shutdown") == errc::closed);
        latecomer.join();
        canceller.join();
        count.wait_until_all_ended();
        CHECK(count.wrong() == 0);
        CHECK(count.dropped() == 0);
        for (server& each : servers)
        {
            for (std::size_t index = 0; index < many / 2; ++index)
            {
                CHECK(each.command({"EXISTS", "lock:" + prefix + std::to_string(index)}) == 0);
            }
        }
        pool.join();
    }
}

TEST_CASE("an io_context may be destroyed on any thread while others use leases of its manager", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    for (int time = 0; time < 40; ++time)
    {
        tally count;
        // Operations are freed with the io_context, or find their manager closed.
        lease_users shared{count, {{}, {errc::closed}}};
        auto pool = std::make_unique<asio::thread_pool>(2);
        auto own = std::make_unique<client>(unhurried(servers), 2);
        auto all = begin_all(own->locks(), shared, *pool, std::to_string(time) + "/");
        count.wait_until_ended(static_cast<std::size_t>(10 * time));
        std::thread stopper{[&] { own->loop().stop(); }};
        stopper.join();
        if (time % 2 == 0)
        {
            own->destroy_manager();
        }
        // Leases are used, cancelled and destroyed on the pool meanwhile.
        std::thread other{[&all]
                          {
                              cancel_every_third(all);
                              all.clear();
                          }};
        own.reset();
        other.join();
        if (time % 4 < 2)
        {
            // Otherwise a body may still wait there.
            count.wait_until_none_is_left();
        }
        pool->stop();
        pool->join();
        pool.reset();
        CHECK(count.started() == count.ended() + count.dropped());
        CHECK(count.wrong() == 0);
    }
}

} // namespace redlock::test
