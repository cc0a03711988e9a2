// SPDX-License-Identifier: BSL-1.0
// A process with one master whose name lookup hangs, and two healthy ones: it uses those, and exits.
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
    redlock::lease held = co_await locks.async_acquire("r", 60s);
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

} // namespace

/// Replaces the C library's function: the lookup of one name never returns, another name leads to this machine.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    const std::string name = node != nullptr ? node : "";
    while (name == hanging)
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
    return 0;
}
