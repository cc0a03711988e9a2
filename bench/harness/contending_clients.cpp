// SPDX-License-Identifier: BSL-1.0
// Clients that compete for one resource.
#include "harness/contending_clients.hpp"

#include "harness/task_group.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

// A round takes far less. A client that is still running by this time is stuck.
constexpr std::chrono::seconds total_timeout{60};
// Each connects to all masters. Many more would exceed the backlog of the servers.
constexpr std::size_t concurrent_connects = 16;

/// The clients of a round. They share a thread, so that their events have one order.
class contending_clients
{
  public:
    contending_clients(
        const contender_factory& make, const contention_load& load, const std::function<server_work()>& work)
        : make_{make}, load_{load}, work_{work}, clients_(load.clients), watch_{load.clients}
    {
    }

    /// May be called once.
    contention_round run()
    {
        for (std::size_t task = 0; task < std::min(concurrent_connects, clients_.size()); ++task)
        {
            tasks_.start(connect());
        }
        finish("connect");
        for (std::size_t number = 0; number < clients_.size(); ++number)
        {
            tasks_.start(compete(number));
        }
        tasks_.start(measure());
        watch_.start(clock::now());
        finish("end");
        return std::move(result_);
    }

  private:
    using clock = contention_watch::clock;

    void finish(const char* what)
    {
        asio::steady_timer watchdog{io_, total_timeout};
        watchdog.async_wait(
            [what](boost::system::error_code cancelled)
            {
                if (!cancelled)
                {
                    throw std::runtime_error{
                        fmt::format("the competing clients did not {} within {}", what, total_timeout)};
                }
            });
        tasks_.finish();
    }

    /// Creates and connects one client after the other, until all exist.
    asio::awaitable<void> connect()
    {
        while (connecting_ < clients_.size())
        {
            const std::size_t number = connecting_++;
            clients_[number] = make_(io_, number);
            co_await clients_[number]->connect();
        }
    }

    asio::awaitable<void> compete(std::size_t number)
    {
        const bool pauses = !load_.greedy || number > 0;
        while (!stopping_)
        {
            if (pauses)
            {
                co_await wait_for(load_.pause);
            }
            if (stopping_ || !co_await acquire(number))
            {
                break;
            }
            if (!stopping_)
            {
                co_await wait_for(load_.hold);
            }
            watch_.on_release(clock::now());
            co_await clients_[number]->release();
        }
        co_await clients_[number]->close();
    }

    /// Returns false if it was interrupted.
    asio::awaitable<bool> acquire(std::size_t number)
    {
        watch_.on_wait(number, clock::now());
        const grant result = co_await clients_[number]->acquire();
        if (result == grant::none)
        {
            watch_.on_gave_up(number, clock::now());
            co_return false;
        }
        watch_.on_grant(number, result, clock::now());
        co_return true;
    }

    /// Measures and ends the round. Clients that wait are interrupted; the others check `stopping_` soon.
    asio::awaitable<void> measure()
    {
        asio::steady_timer timer{co_await asio::this_coro::executor, load_.start};
        co_await timer.async_wait(asio::use_awaitable);
        const server_work before = work_();
        watch_.begin_measurement(clock::now());
        timer.expires_after(load_.measure);
        co_await timer.async_wait(asio::use_awaitable);
        static_cast<contention_record&>(result_) = watch_.finish(clock::now());
        result_.servers = work_() - before;
        stopping_ = true;
        for (std::size_t number = 0; number < clients_.size(); ++number)
        {
            if (watch_.is_waiting(number))
            {
                tasks_.start(clients_[number]->interrupt());
            }
        }
    }

    asio::awaitable<void> wait_for(time_range range)
    {
        if (range.max == std::chrono::microseconds{0})
        {
            co_return;
        }
        std::uniform_int_distribution<std::chrono::microseconds::rep> any{
            range.min.count(), range.max.count()};
        asio::steady_timer timer{co_await asio::this_coro::executor, std::chrono::microseconds{any(random_)}};
        co_await timer.async_wait(asio::use_awaitable);
    }

    const contender_factory& make_;
    const contention_load& load_;
    const std::function<server_work()>& work_;
    asio::io_context io_{1};
    std::vector<std::unique_ptr<contender>> clients_;
    task_group tasks_{io_};
    std::size_t connecting_ = 0; // The next client to connect.
    contention_watch watch_;
    std::minstd_rand random_{}; // The same sequence for all kinds of clients.
    bool stopping_ = false;
    contention_round result_{};
};

} // namespace

contention_round
compete(const contender_factory& make, const contention_load& load, const std::function<server_work()>& work)
{
    return contending_clients{make, load, work}.run();
}

} // namespace redlock::bench
