// SPDX-License-Identifier: BSL-1.0
// Clients of the library that compete for one resource.
#include "harness/lock_contenders.hpp"

#include "harness/client.hpp"
#include "harness/redlock_client.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench
{

namespace
{

constexpr std::chrono::microseconds max_textbook_delay{400'000};

/// Neighbouring seeds give unrelated sequences. Each round has another resource.
std::mt19937_64 seeded_by(const std::string& resource, std::size_t client)
{
    std::vector<std::size_t> parts{client};
    parts.insert(parts.end(), resource.begin(), resource.end());
    std::seed_seq seed(parts.begin(), parts.end());
    return std::mt19937_64{seed};
}

/// The part that both strategies share.
class lock_contender : public contender
{
  public:
    lock_contender(asio::io_context& io, const config& options, std::string resource, std::size_t number)
        : locks_{io, options}, resource_{std::move(resource)}, number_{number}
    {
    }

    asio::awaitable<void> connect() override
    {
        lease own = co_await locks_.async_acquire(resource_of("warm", number_), ttl);
        co_await bench::release(own);
    }
    asio::awaitable<void> release() override { co_await bench::release(held_); }
    asio::awaitable<void> interrupt() override { co_await shut_down(locks_); }
    asio::awaitable<void> close() override { co_await shut_down(locks_); }

  protected:
    lock_manager locks_;
    std::string resource_;
    std::size_t number_;
    lease held_;
};

class library_contender final : public lock_contender
{
  public:
    using lock_contender::lock_contender;

    asio::awaitable<grant> acquire() override
    {
        const acquire_options options{.ttl = ttl, .wait = redlock::no_limit};
        report last;
        error_code refused;
        auto token = asio::redirect_error(asio::use_awaitable, refused);
        held_ = co_await locks_.async_acquire(std::string{resource_}, options, last, token);
        if (refused && refused != errc::closed)
        {
            throw system_error{refused};
        }
        if (refused)
        {
            co_return grant::none;
        }
        co_return last.queue || last.rounds > 1 ? grant::waited : grant::at_once;
    }
};

class textbook_contender final : public lock_contender
{
  public:
    textbook_contender(asio::io_context& io, const config& options, std::string resource, std::size_t number)
        : lock_contender{io, options, std::move(resource), number},
          delay_{io},
          random_{seeded_by(resource_, number)}
    {
    }

    asio::awaitable<grant> acquire() override
    {
        for (grant result = grant::at_once; !interrupted_; result = grant::waited)
        {
            error_code refused; // For any reason: the round is repeated.
            auto token = asio::redirect_error(asio::use_awaitable, refused);
            held_ = co_await locks_.async_try_acquire(std::string{resource_}, ttl, token);
            if (held_)
            {
                co_return result;
            }
            co_await wait();
        }
        co_return grant::none;
    }

    asio::awaitable<void> interrupt() override
    {
        interrupted_ = true;
        delay_.cancel();
        co_await lock_contender::interrupt();
    }

  private:
    asio::awaitable<void> wait()
    {
        if (interrupted_)
        {
            co_return;
        }
        std::uniform_int_distribution<std::chrono::microseconds::rep> any{0, max_textbook_delay.count()};
        delay_.expires_after(std::chrono::microseconds{any(random_)});
        error_code cancelled;
        co_await delay_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }

    asio::steady_timer delay_;
    std::mt19937_64 random_; // The same sequence in each run, another one for each client and round.
    bool interrupted_ = false;
};

template <class Contender>
contender_factory factory_of(config options, std::string resource)
{
    return [options = std::move(options),
            resource = std::move(resource)](asio::io_context& io, std::size_t number)
    { return std::make_unique<Contender>(io, options, resource, number); };
}

} // namespace

contender_factory library_contenders(config options, std::string resource)
{
    return factory_of<library_contender>(std::move(options), std::move(resource));
}

contender_factory textbook_contenders(config options, std::string resource)
{
    return factory_of<textbook_contender>(std::move(options), std::move(resource));
}

} // namespace redlock::bench
