// SPDX-License-Identifier: BSL-1.0
// A process with one master whose name lookup hangs, and two healthy ones: it uses those, and exits. Then many managers
// with hanging names at once.
//
// usage: hanging_name PORT PORT
// Writes each completed step on a line. A step that waits for the hanging lookup never completes.
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <exception>
#include <iostream>
#include <netdb.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace asio = boost::asio;

namespace
{

using namespace std::chrono_literals;

constexpr std::string_view hanging = "hanging.invalid";
constexpr std::string_view healthy = "healthy.invalid";

std::atomic<bool> hangs{false};

void say(std::string_view word)
{
    std::cout << word << std::endl;
}

asio::awaitable<void> work(asio::io_context& io, redlock::lock_manager& locks)
{
    redlock::lease held = co_await locks.async_acquire("stock", 60s);
    say("acquired");
    co_await held.async_release();
    say("released");
    hangs.wait(false);
    asio::ip::tcp::resolver resolver{io};
    const std::string name{healthy};
    co_await resolver.async_resolve(name, "1", asio::use_awaitable);
    say("resolved by the application");
    co_await locks.async_shutdown();
    say("shut down");
}

/// Shuts down managers of which each has a hanging name of its own, and every other one nothing else. Fewer names than may
/// be looked up at once: the healthy ones share the limit.
void shut_down_many(const redlock::config& options)
{
    asio::io_context io;
    std::vector<redlock::lock_manager> managers;
    for (int number = 0; number < 20; ++number)
    {
        redlock::config own = options;
        const std::string prefix = std::to_string(number);
        own.masters.front() = redlock::tcp_address{.host = prefix + "." + std::string{hanging}};
        if (number % 2 == 0)
        {
            own.masters.erase(own.masters.begin() + 1, own.masters.end());
            own.masters.emplace_back(redlock::tcp_address{.host = prefix + ".other." + std::string{hanging}});
        }
        managers.emplace_back(io, own);
    }
    int acquired = 0;
    int shut_down = 0;
    for (redlock::lock_manager& locks : managers)
    {
        const auto number = &locks - managers.data();
        const auto end = [&locks, &shut_down]
        { locks.async_shutdown([&shut_down](redlock::error_code) { ++shut_down; }); };
        if (number % 2 == 0)
        {
            end();
            continue;
        }
        const auto on_acquired = [&acquired, end](redlock::error_code error, const redlock::lease&)
        {
            acquired += error ? 0 : 1;
            end();
        };
        locks.async_try_acquire("stock " + std::to_string(number), {.ttl = 60s}, on_acquired);
    }
    io.run();
    std::cout << acquired << " acquired, " << shut_down << " shut down" << std::endl;
}

} // namespace

/// Replaces the C library's function: the lookup of some names never returns, another name leads to this machine.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    const std::string name = node != nullptr ? node : "";
    while (name.ends_with(hanging))
    {
        hangs = true;
        hangs.notify_all();
        pause();
    }
    return real(name == healthy ? "127.0.0.1" : node, service, hints, found);
}

int main(int count, char** values)
{
    const std::span arguments{values, static_cast<std::size_t>(count)};
    redlock::config options;
    options.masters.push_back(redlock::tcp_address{.host = std::string{hanging}});
    for (const std::string_view port : arguments.subspan(1))
    {
        options.masters.push_back(redlock::tcp_address{
            .host = std::string{healthy}, .port = static_cast<std::uint16_t>(std::stoi(std::string{port}))});
    }
    {
        asio::io_context io;
        redlock::lock_manager locks{io, options};
        asio::co_spawn(
            io, work(io, locks),
            [](std::exception_ptr problem)
            {
                if (problem)
                {
                    std::rethrow_exception(problem);
                }
            });
        io.run();
        say("run() returned");
    }
    say("the io_context is destroyed");
    {
        // Abandoned during the lookup, without a shutdown.
        asio::io_context io;
        const redlock::lock_manager locks{io, options};
        io.poll();
    }
    say("a second one is destroyed");
    shut_down_many(options);
    return 0;
}
