// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource.
#include "harness/contending_clients.hpp"

#include "harness/client.hpp"
#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"
#include "harness/task_group.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/chrono.h>

namespace redlock::bench
{

namespace
{

// A round takes far less. A client that is still running by this time is stuck.
constexpr std::chrono::seconds total_timeout{60};
constexpr std::chrono::microseconds max_textbook_delay{400'000};

double locking_commands(std::span<test::server> masters)
{
    return commands_run(masters, "set") + commands_run(masters, "evalsha");
}

/// The clients of a scenario. Each has its own connections, as a separate process would. They share a thread, so
/// that their events have one order.
class contending_clients
{
  public:
    contending_clients(const config& options, const contention_scenario& scenario, wait_strategy strategy)
        : scenario_{scenario}, strategy_{strategy}
    {
        for (std::size_t number = 0; number < scenario.clients; ++number)
        {
            clients_.emplace_back(io_, options);
        }
        result_.grants.resize(scenario.clients);
    }

    /// May be called once.
    contention_round run(std::span<test::server> masters, std::chrono::milliseconds length)
    {
        for (std::size_t number = 0; number < clients_.size(); ++number)
        {
            tasks_.start(warm_up(number));
        }
        finish();
        const double before = locking_commands(masters);
        for (std::size_t number = 0; number < clients_.size(); ++number)
        {
            tasks_.start(compete(number));
        }
        tasks_.start(end_after(length));
        released_ = clock::now();
        finish();
        result_.commands = locking_commands(masters) - before;
        result_.seconds = std::chrono::duration<double>{length}.count();
        return std::move(result_);
    }

  private:
    using clock = std::chrono::steady_clock;

    struct client
    {
        client(asio::io_context& io, const config& options) : locks{io, options}, retry{io} {}

        lock_manager locks;
        asio::steady_timer retry;                         // The random delay of the textbook strategy.
        std::optional<clock::time_point> waiting_since{}; // Set while it waits.
    };

    void finish()
    {
        asio::steady_timer watchdog{io_, total_timeout};
        watchdog.async_wait(
            [](error_code cancelled)
            {
                if (!cancelled)
                {
                    throw std::runtime_error{
                        fmt::format("the competing clients did not end within {}", total_timeout)};
                }
            });
        tasks_.finish();
    }

    /// Connects to the masters, so that connecting isn't measured.
    asio::awaitable<void> warm_up(std::size_t number)
    {
        std::string own = resource_of("warm", number);
        lease held = co_await clients_[number].locks.async_acquire(std::move(own), ttl);
        co_await release(held);
    }

    asio::awaitable<void> compete(std::size_t number)
    {
        asio::steady_timer timer{co_await asio::this_coro::executor};
        const bool pauses = !scenario_.greedy || number > 0;
        while (!stopping_)
        {
            if (pauses)
            {
                timer.expires_after(random_duration(std::chrono::microseconds{0}, max_pause));
                co_await timer.async_wait(asio::use_awaitable);
            }
            lease held = co_await acquire(number);
            if (!held)
            {
                break;
            }
            timer.expires_after(random_duration(min_hold, max_hold));
            co_await timer.async_wait(asio::use_awaitable);
            on_release();
            co_await release(held);
        }
        co_await shut_down(clients_[number].locks);
    }

    /// Ends the round. Waiting clients are shut down; the others check `stopping_` soon.
    asio::awaitable<void> end_after(std::chrono::milliseconds length)
    {
        asio::steady_timer timer{co_await asio::this_coro::executor, length};
        co_await timer.async_wait(asio::use_awaitable);
        stopping_ = true;
        end_hand_over(); // The current one may be unfinished, but lasted at least this long.
        for (client& each : clients_)
        {
            if (is_waiting(each))
            {
                each.retry.cancel();
                tasks_.start(shut_down(each.locks));
            }
        }
    }

    /// Returns an empty lease if the round ended first.
    asio::awaitable<lease> acquire(std::size_t number)
    {
        if (stopping_)
        {
            co_return lease{};
        }
        client& self = clients_[number];
        self.waiting_since = clock::now();
        lease held;
        if (strategy_ == wait_strategy::library)
        {
            held = co_await acquire_as_library(self);
        }
        else
        {
            held = co_await acquire_as_textbook(self);
        }
        const auto waited = clock::now() - *std::exchange(self.waiting_since, std::nullopt);
        result_.max_wait = std::max<std::chrono::nanoseconds>(result_.max_wait, waited);
        if (held && !stopping_)
        {
            on_grant(number);
            co_return held;
        }
        co_return lease{};
    }

    asio::awaitable<lease> acquire_as_library(client& self)
    {
        std::string name = resource_of("invoice", 0);
        const acquire_options options{.ttl = ttl, .wait = redlock::no_limit};
        report round;
        error_code refused;
        auto token = asio::redirect_error(asio::use_awaitable, refused);
        lease held = co_await self.locks.async_acquire(std::move(name), options, round, token);
        result_.rounds += round.rounds;
        if (refused && refused != errc::closed)
        {
            throw system_error{refused};
        }
        co_return held;
    }

    asio::awaitable<lease> acquire_as_textbook(client& self)
    {
        lease held;
        while (!held && !stopping_)
        {
            std::string name = resource_of("invoice", 0);
            error_code refused; // Any reason: the round is repeated.
            auto token = asio::redirect_error(asio::use_awaitable, refused);
            held = co_await self.locks.async_try_acquire(std::move(name), ttl, token);
            ++result_.rounds;
            if (!held && !stopping_)
            {
                self.retry.expires_after(random_duration(std::chrono::microseconds{0}, max_textbook_delay));
                error_code cancelled;
                co_await self.retry.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
            }
        }
        co_return held;
    }

    void on_grant(std::size_t number)
    {
        if (std::exchange(is_held_, true))
        {
            throw std::runtime_error{"two clients held the same resource at the same time"};
        }
        ++result_.grants[number];
        result_.repeated_grants += std::exchange(last_holder_, number) == number ? 1 : 0;
        end_hand_over();
    }

    void end_hand_over()
    {
        if (released_)
        {
            result_.hand_overs.push_back(clock::now() - *std::exchange(released_, std::nullopt));
        }
    }

    void on_release()
    {
        is_held_ = false;
        if (std::any_of(clients_.begin(), clients_.end(), is_waiting))
        {
            released_ = clock::now();
        }
    }

    static bool is_waiting(const client& each) { return each.waiting_since.has_value(); }

    std::chrono::microseconds random_duration(std::chrono::microseconds min, std::chrono::microseconds max)
    {
        std::uniform_int_distribution<std::chrono::microseconds::rep> any{min.count(), max.count()};
        return std::chrono::microseconds{any(random_)};
    }

    contention_scenario scenario_;
    wait_strategy strategy_;
    asio::io_context io_{1};
    std::deque<client> clients_;
    task_group tasks_{io_};
    std::minstd_rand random_{}; // The same sequence for both strategies.
    bool is_held_ = false;
    std::optional<std::size_t> last_holder_{};
    std::optional<clock::time_point> released_{}; // Set while a client waits for a resource that is free.
    bool stopping_ = false;
    contention_round result_{};
};

} // namespace

contention_round compete(
    std::span<test::server> masters, const contention_scenario& scenario, wait_strategy strategy,
    std::chrono::milliseconds length)
{
    return contending_clients{config_with_long_timeout(masters), scenario, strategy}.run(masters, length);
}

} // namespace redlock::bench
