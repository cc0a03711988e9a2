// SPDX-License-Identifier: BSL-1.0
// The lock as a member: of a class that is constructed before its context runs, of a singleton, of a variant; a manager
// that is moved, replaced and destroyed while operations run; a lease that outlives its manager.
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct nothing_held
{
};
using state = std::variant<nothing_held, redlock::lease, std::error_code>;

class service
{
  public:
    service(asio::io_context& io, redlock::config options)
        : locks_{std::make_unique<redlock::lock_manager>(io, std::move(options))}
    {
    }

    asio::awaitable<state> try_to_lead(std::string what = "leader", std::chrono::milliseconds ttl = 10s)
    {
        redlock::error_code why;
        try
        {
            co_return co_await locks_->async_try_acquire(what, ttl);
        }
        catch (const redlock::system_error& error)
        {
            why = error.code();
        }
        co_return std::error_code{why};
    }

    void replace(asio::io_context& io, redlock::config options)
    {
        locks_ = std::make_unique<redlock::lock_manager>(io, std::move(options));
    }

  private:
    std::unique_ptr<redlock::lock_manager> locks_;
};

int main(int argc, char** argv)
{
    static_assert(std::is_nothrow_move_constructible_v<redlock::lease>);
    static_assert(!std::is_copy_constructible_v<redlock::lease>);

    const std::vector<std::string> urls(argv + 1, argv + argc);
    asio::io_context io;
    auto guard = asio::make_work_guard(io);
    redlock::config options;
    options.masters.assign(urls.begin(), urls.end());
    options.node_timeout = 500ms;
    options.observer.on_event = [](const redlock::event& what)
    {
        if (const auto* down = std::get_if<redlock::master_down>(&what))
        {
            std::printf("%s is down: %s\n", down->name.c_str(), down->reason.message().c_str());
        }
    };
    service own{io, options};
    std::jthread thread{[&] { io.run(); }};
    try
    {
        state first = asio::co_spawn(io, own.try_to_lead(), asio::use_future).get();
        const state second = asio::co_spawn(io, own.try_to_lead(), asio::use_future).get();
        if (!std::holds_alternative<redlock::lease>(first) ||
            std::get<std::error_code>(second) != redlock::errc::held_by_other)
        {
            std::puts("two leaders, or none");
            std::exit(1);
        }
        // The manager goes while a lease is held: the lease can still be destroyed, and its ttl frees the resource.
        state held = asio::co_spawn(io, own.try_to_lead("short", 1s), asio::use_future).get();
        std::promise<void> replaced;
        asio::post(
            io,
            [&]
            {
                own.replace(io, options);
                replaced.set_value();
            });
        replaced.get_future().get();
        held = nothing_held{};
        do
        {
            held = asio::co_spawn(io, own.try_to_lead("short", 1s), asio::use_future).get();
        } while (std::holds_alternative<std::error_code>(held) &&
                 std::get<std::error_code>(held) == redlock::condition::retryable);
        if (!std::holds_alternative<redlock::lease>(held))
        {
            std::puts(std::get<std::error_code>(held).message().c_str());
            std::exit(1);
        }
    }
    catch (const std::exception& error)
    {
        std::printf("%s\n", error.what());
        std::exit(1);
    }
    guard.reset();
    io.stop();
    return 0;
}
