// SPDX-License-Identifier: BSL-1.0
// One manager used by many threads: operations on every kind of executor, their cancellation, and leases that are read.
#include "integration/fixture.hpp"
#include "integration/tally.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
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

constexpr acquire_options until_won{.ttl = long_ttl, .wait = redlock::no_limit};
constexpr keep_options kept_until_won{
    .ttl = long_ttl, .max_hold = redlock::no_limit, .wait = redlock::no_limit};

/// The executors of the handlers of one test.
struct outputs
{
    event_loop loop{2};
    asio::thread_pool pool{2};

    std::vector<place> all(const place& of_manager)
    {
        return {
            of_manager,
            place_of(loop.context().get_executor()),
            place_of(asio::make_strand(loop.context())),
            place_of(pool.get_executor()),
            place_of(asio::make_strand(pool)),
            anywhere(asio::system_executor{})};
    }
};

/// Acquires, extends, inspects and releases repeatedly. Each operation is started by the handler of the one before it,
/// so only the library orders their threads.
class customer : public std::enable_shared_from_this<customer>
{
  public:
    /// Who holds the resource, and how often it was held. Not atomic: protected by the lock.
    struct resource
    {
        std::string name;
        int holders = 0;
        int times_held = 0;
    };

    customer(lock_manager& locks, tally& count, place at, std::shared_ptr<resource> wanted, int times)
        : locks_{locks}, count_{count}, at_{std::move(at)}, wanted_{std::move(wanted)}, left_{times}
    {
    }

    void go()
    {
        if (--left_ < 0)
        {
            return;
        }
        if (left_ % 4 == 0)
        {
            work_in_a_body();
            return;
        }
        count_.start(
            at_, [&](auto handler) { locks_.async_acquire(wanted_->name, until_won, std::move(handler)); },
            [self = shared_from_this()](error_code error, lease won)
            {
                self->count_.expect(!error && won.valid());
                self->held_ = std::move(won);
                self->enter_section();
                self->extend_it();
            });
    }

  private:
    void enter_section()
    {
        count_.expect(++wanted_->holders == 1);
        ++wanted_->times_held;
    }

    void extend_it()
    {
        count_.start(
            at_, [&](auto handler) { held_.async_extend(2 * long_ttl, std::move(handler)); },
            [self = shared_from_this()](error_code error)
            {
                self->count_.expect(!error);
                self->look();
            });
    }

    void look()
    {
        count_.start(
            at_, [&](auto handler) { locks_.async_inspect(wanted_->name, std::move(handler)); },
            [self = shared_from_this()](error_code error, inspection seen)
            {
                self->count_.expect(!error && seen.holder() == self->held_.owner_id());
                self->give_back();
            });
    }

    void give_back()
    {
        --wanted_->holders;
        if (left_ % 4 == 1)
        {
            held_ = {};
            go();
            return;
        }
        count_.start(
            at_, [&](auto handler) { held_.async_release(std::move(handler)); },
            [self = shared_from_this()](error_code error)
            {
                self->count_.expect(!error && !self->held_);
                self->go();
            });
    }

    asio::awaitable<void> work(lease& held)
    {
        enter_section();
        const bool valid = held.valid();
        count_.expect(valid);
        --wanted_->holders;
        co_return;
    }

    void work_in_a_body()
    {
        count_.start(
            at_,
            [&](auto handler)
            {
                const auto body = [self = shared_from_this()](lease& held) { return self->work(held); };
                locks_.async_with_lock(wanted_->name, kept_until_won, body, std::move(handler));
            },
            [self = shared_from_this()](const std::exception_ptr& thrown)
            {
                self->count_.expect(!thrown);
                self->go();
            });
    }

    lock_manager& locks_;
    tally& count_;
    place at_;
    std::shared_ptr<resource> wanted_;
    int left_;
    lease held_;
};

bool no_lock_is_left(std::vector<server>& servers, const std::string& resource)
{
    bool none = true;
    for (server& each : servers)
    {
        none = goes_away(each, "lock:" + resource) && none;
    }
    return none;
}

} // namespace

TEST_CASE("operations of many threads end once each, on the executors of their handlers", "[threads]")
{
    constexpr int times = 40;
    std::vector<server> servers = start_servers(3);
    outputs own;
    asio::thread_pool managers{3};
    event_loop loop{3};
    const std::vector<std::function<place()>> kinds{
        [&] { return place_of(loop.context().get_executor()); },
        [&] { return place_of(managers.get_executor()); },
        [&] { return place_of(asio::make_strand(loop.context())); }};
    const auto kind = GENERATE(0U, 1U, 2U);
    CAPTURE(kind);
    const place of_manager = kinds[kind]();
    tally count;
    std::vector<std::shared_ptr<customer::resource>> resources;
    {
        lock_manager locks{of_manager.executor, unhurried(servers)};
        std::vector<std::thread> starters;
        for (int starter = 0; starter < 3; ++starter)
        {
            // Three customers compete for a resource, each at a different place.
            for (std::size_t index = 0; const place& at : own.all(of_manager))
            {
                if (resources.size() <= index / 2)
                {
                    resources.push_back(
                        std::make_shared<customer::resource>("stock" + std::to_string(index / 2)));
                }
                const auto one = std::make_shared<customer>(locks, count, at, resources[index / 2], times);
                starters.emplace_back([one] { one->go(); });
                ++index;
            }
        }
        for (std::thread& each : starters)
        {
            each.join();
        }
        count.wait_until_all_ended();
        CHECK_FALSE(shut_down(locks));
    }
    CHECK(count.wrong() == 0);
    CHECK(count.dropped() == 0);
    for (const auto& each : resources)
    {
        CHECK(each->times_held == 6 * times);
        CHECK(no_lock_is_left(servers, each->name));
    }
}

TEST_CASE(
    "an acquire cancelled from its strand, while its lock is released elsewhere, ends once", "[threads]")
{
    constexpr int times = 60;
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers), 2};
    own.wait_for_masters();
    asio::thread_pool pool{2};
    tally count;
    std::atomic<int> won{0};
    std::atomic<int> cancelled{0};
    // Signals must be emitted on the executor of their handler.
    struct waiter
    {
        asio::strand<asio::thread_pool::executor_type> strand;
        asio::cancellation_signal stop{};
    };
    constexpr std::size_t waiters = 4;
    constexpr std::array types{
        asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total};
    for (int time = 0; time < times; ++time)
    {
        // A lease of the last time may still be in the hands of the thread that called its handler.
        lease holder = own.acquire("stock", until_won).lease;
        REQUIRE(holder);
        std::vector<std::shared_ptr<waiter>> all;
        for (std::size_t index = 0; index < waiters; ++index)
        {
            const auto one = std::make_shared<waiter>(asio::make_strand(pool));
            all.push_back(one);
            const auto start = [&, one]
            {
                count.start(
                    place_of(one->strand),
                    [&](auto handler)
                    {
                        own.locks().async_acquire(
                            "stock", until_won,
                            asio::bind_cancellation_slot(one->stop.slot(), std::move(handler)));
                    },
                    [&, one](error_code error, const lease& held)
                    {
                        count.expect(
                            error == asio::error::operation_aborted ? !held : !error && held.valid());
                        ++(error ? cancelled : won);
                    });
            };
            asio::post(one->strand, start);
        }
        std::thread releaser{[&holder] { holder = {}; }};
        // The first may win; a winner's lease is destroyed with its handler, for the others to win.
        for (std::size_t index = 1; index < waiters; ++index)
        {
            const auto one = all[index];
            const asio::cancellation_type type = types[index - 1];
            asio::post(one->strand, [one, type] { one->stop.emit(type); });
        }
        releaser.join();
        count.wait_until_ended(waiters * static_cast<std::size_t>(time + 1));
        count.wait_until_all_ended();
    }
    CHECK(won + cancelled == times * static_cast<int>(waiters));
    CHECK(count.wrong() == 0);
    CHECK(count.dropped() == 0);
    // Granted to a cancelled acquire or not, nothing is left of it.
    CHECK(no_lock_is_left(servers, "stock"));
    CHECK_FALSE(shut_down(own.locks()));
    pool.join();
}

TEST_CASE("a lease that other threads read only moves forward", "[threads]")
{
    std::vector<server> servers = start_servers(3);
    client own{unhurried(servers), 2};
    own.wait_for_masters();
    asio::thread_pool pool{2};
    for (int time = 0; time < 40; ++time)
    {
        const std::string resource = "stock" + std::to_string(time);
        lease held = own.win(resource);
        const std::string owner{held.owner_id()};
        std::atomic<int> wrong{0};
        std::atomic<bool> started{false};
        const auto read = [&, &seen = std::as_const(held)]
        {
            clock::time_point until{};
            bool ended = false;
            bool released = false;
            while (!released)
            {
                const bool was_released = !seen;
                const bool valid = seen.valid();
                const clock::time_point now_until = seen.valid_until();
                // Until the release, extensions prolong it. A released lease stays invalid.
                const bool forward = now_until >= until || now_until == clock::time_point{};
                wrong += forward && !(ended && valid) && !(was_released && valid) ? 0 : 1;
                wrong += was_released && now_until != clock::time_point{} ? 1 : 0;
                wrong += seen.owner_id() == owner && seen.resource() == resource ? 0 : 1;
                wrong += seen.remaining().count() < 0 ? 1 : 0;
                until = now_until;
                ended = ended || !valid;
                released = was_released;
                started = true;
            }
        };
        std::vector<std::thread> readers;
        readers.emplace_back(read);
        readers.emplace_back(read);
        while (!started)
        {
            std::this_thread::yield();
        }
        tally count;
        const place at = place_of(pool.get_executor());
        std::atomic<int> losses{0};
        std::atomic<int> releases{0};
        // Started by several threads, and queued by the library.
        const auto use = [&](int thread)
        {
            count.start(
                at, [&](auto handler) { held.async_wait_lost(std::move(handler)); },
                [&](error_code error, error_code) { losses += error == errc::not_held ? 0 : 1; });
            for (int extension = 0; extension < 4; ++extension)
            {
                count.start(
                    at, [&](auto handler) { held.async_extend((2 + thread) * long_ttl, std::move(handler)); },
                    [&](error_code error) { count.expect(!error || error == errc::not_held); });
            }
            count.start(
                at, [&](auto handler) { held.async_release(std::move(handler)); },
                [&](error_code error)
                {
                    count.expect(!error || error == errc::not_held);
                    releases += error ? 0 : 1;
                });
        };
        std::thread first{use, 0};
        std::thread second{use, 1};
        first.join();
        second.join();
        for (std::thread& each : readers)
        {
            each.join();
        }
        count.wait_until_all_ended();
        CHECK(wrong == 0);
        CHECK(count.wrong() == 0);
        CHECK(losses == 0);
        CHECK(releases == 1);
        CHECK(no_lock_is_left(servers, resource));
    }
    CHECK_FALSE(shut_down(own.locks()));
}

} // namespace redlock::test
