// SPDX-License-Identifier: BSL-1.0
// Clients that all want the same resource.
#include "harness/contending_clients.hpp"

#include "harness/client.hpp"
#include "harness/masters.hpp"
#include "harness/redlock_client.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/chrono.h>

namespace redlock::bench
{

namespace
{

// All of it takes far less: whoever isn't back by then never will be.
constexpr std::chrono::seconds patience_with_all{60};

double locking_commands(std::span<test::server> masters)
{
    return commands_run(masters, "set") + commands_run(masters, "evalsha");
}

asio::awaitable<void> release(lease& held)
{
    error_code unconfirmed; // It is made up for.
    auto token = asio::redirect_error(asio::use_awaitable, unconfirmed);
    co_await held.async_release(token);
}

} // namespace

rivals::rivals(const config& options, const scene& what, waiting how) : scene_{what}, how_{how}
{
    for (std::size_t number = 0; number < what.clients; ++number)
    {
        clients_.emplace_back(io_, options);
    }
    seen_.grants.resize(what.clients);
}

contest rivals::run(std::span<test::server> masters, std::chrono::milliseconds length)
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
    seen_.commands = locking_commands(masters) - before;
    seen_.seconds = std::chrono::duration<double>{length}.count();
    return std::move(seen_);
}

void rivals::finish()
{
    asio::steady_timer alarm{io_, patience_with_all};
    alarm.async_wait(
        [](error_code cancelled)
        {
            if (!cancelled)
            {
                throw std::runtime_error{
                    fmt::format("clients that want the same resource didn't end in {}", patience_with_all)};
            }
        });
    tasks_.finish();
}

/// Connecting isn't part of any figure.
asio::awaitable<void> rivals::warm_up(std::size_t number)
{
    std::string own = resource_of("warm", number);
    lease held = co_await clients_[number].locks.async_acquire(std::move(own), ttl);
    co_await release(held);
}

asio::awaitable<void> rivals::compete(std::size_t number)
{
    asio::steady_timer timer{co_await asio::this_coro::executor};
    const bool pauses = !scene_.greedy || number > 0;
    while (!over_)
    {
        if (pauses)
        {
            timer.expires_after(between(std::chrono::microseconds{0}, longest_pause));
            co_await timer.async_wait(asio::use_awaitable);
        }
        lease held = co_await acquire(number);
        if (!held)
        {
            break;
        }
        timer.expires_after(between(shortest_hold, longest_hold));
        co_await timer.async_wait(asio::use_awaitable);
        on_release();
        co_await release(held);
    }
    co_await shut_down(clients_[number].locks);
}

/// Those who wait are told; who holds the resource or pauses sees it soon enough.
asio::awaitable<void> rivals::end_after(std::chrono::milliseconds length)
{
    asio::steady_timer timer{co_await asio::this_coro::executor, length};
    co_await timer.async_wait(asio::use_awaitable);
    over_ = true;
    end_hand_over(); // However few there were: nobody has had it for so long at least.
    for (client& each : clients_)
    {
        if (is_waiting(each))
        {
            each.retry.cancel();
            tasks_.start(shut_down(each.locks));
        }
    }
}

asio::awaitable<lease> rivals::acquire(std::size_t number)
{
    if (over_)
    {
        co_return lease{};
    }
    client& self = clients_[number];
    self.asked = clock::now();
    lease held;
    if (how_ == waiting::library)
    {
        held = co_await acquire_as_library(self);
    }
    else
    {
        held = co_await acquire_as_textbook(self);
    }
    const auto waited = clock::now() - *std::exchange(self.asked, std::nullopt);
    seen_.longest_wait = std::max<std::chrono::nanoseconds>(seen_.longest_wait, waited);
    if (held && !over_)
    {
        on_grant(number);
        co_return held;
    }
    co_return lease{};
}

asio::awaitable<lease> rivals::acquire_as_library(client& self)
{
    std::string name = resource_of("invoice", 0);
    const acquire_options options{.ttl = ttl, .wait = redlock::no_limit};
    report how;
    error_code refused;
    auto token = asio::redirect_error(asio::use_awaitable, refused);
    lease held = co_await self.locks.async_acquire(std::move(name), options, how, token);
    seen_.rounds += how.rounds;
    if (refused && refused != errc::closed)
    {
        throw system_error{refused};
    }
    co_return held;
}

asio::awaitable<lease> rivals::acquire_as_textbook(client& self)
{
    lease held;
    while (!held && !over_)
    {
        std::string name = resource_of("invoice", 0);
        error_code refused; // For whatever reason.
        auto token = asio::redirect_error(asio::use_awaitable, refused);
        held = co_await self.locks.async_try_acquire(std::move(name), ttl, token);
        ++seen_.rounds;
        if (!held && !over_)
        {
            self.retry.expires_after(between(std::chrono::microseconds{0}, longest_textbook_delay));
            error_code cancelled;
            co_await self.retry.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        }
    }
    co_return held;
}

void rivals::on_grant(std::size_t number)
{
    if (std::exchange(is_held_, true))
    {
        throw std::runtime_error{"two clients held the same resource at the same time"};
    }
    ++seen_.grants[number];
    seen_.again += std::exchange(last_holder_, number) == number ? 1 : 0;
    end_hand_over();
}

void rivals::end_hand_over()
{
    if (released_)
    {
        seen_.hand_overs.push_back(clock::now() - *std::exchange(released_, std::nullopt));
    }
}

void rivals::on_release()
{
    is_held_ = false;
    if (std::any_of(clients_.begin(), clients_.end(), is_waiting))
    {
        released_ = clock::now();
    }
}

std::chrono::microseconds rivals::between(std::chrono::microseconds least, std::chrono::microseconds most)
{
    std::uniform_int_distribution<std::chrono::microseconds::rep> any{least.count(), most.count()};
    return std::chrono::microseconds{any(random_)};
}

} // namespace redlock::bench
