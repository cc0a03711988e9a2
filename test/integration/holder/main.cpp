// SPDX-License-Identifier: BSL-1.0
// A process that keeps a lease and writes down its state: for tests that stop the whole process.
//
// usage: lease_holder RESOURCE TTL_MS CA_FILE (URL USER PASSWORD)...
// Each URL is without user and password; an argument that isn't needed is empty.
// Writes "held", then "valid" or "invalid" at the first check and whenever the answer changes, then how it ended.
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <span>
#include <string>

namespace asio = boost::asio;

namespace
{

void say(std::string_view word)
{
    std::cout << word << std::endl;
}

/// Checks the lease continuously until it is cancelled.
asio::awaitable<void> look_at(redlock::lease& held)
{
    say("held " + std::string{held.owner_id()});
    asio::steady_timer pause{co_await asio::this_coro::executor};
    std::string last;
    try
    {
        for (;;)
        {
            const std::string seen = held.valid() ? "valid" : "invalid";
            if (seen != last)
            {
                say(seen);
            }
            last = seen;
            pause.expires_after(std::chrono::milliseconds{1});
            co_await pause.async_wait(asio::use_awaitable);
        }
    }
    catch (const redlock::system_error&)
    {
        say("cancelled");
        throw;
    }
}

asio::awaitable<void> hold(redlock::lock_manager& locks, std::string resource, std::chrono::milliseconds ttl)
{
    const redlock::keep_options options{.ttl = ttl, .max_hold = redlock::no_limit};
    auto body = [](redlock::lease& held) -> asio::awaitable<void> { co_await look_at(held); };
    co_await locks.async_with_lock(std::move(resource), options, body);
}

/// A master with credentials, which the URL of a unix socket can't contain.
redlock::master master_at(const std::string& url, const std::string& user, const std::string& password)
{
    const redlock::master parsed{url};
    if (parsed.is_unix())
    {
        return redlock::unix_address{.path = parsed.host(), .username = user, .password = password};
    }
    return redlock::tcp_address{
        .host = parsed.host(),
        .port = parsed.port(),
        .username = user,
        .password = password,
        .tls = parsed.is_tls()};
}

} // namespace

int main(int count, char** values)
{
    const std::span arguments{values, static_cast<std::size_t>(count)};
    redlock::config options;
    options.tls.ca_file = arguments[3];
    for (auto left = arguments.subspan(4); left.size() >= 3; left = left.subspan(3))
    {
        options.masters.push_back(master_at(left[0], left[1], left[2]));
    }
    asio::io_context io;
    redlock::lock_manager locks{io, options};
    auto ended = [&io](std::exception_ptr problem)
    {
        try
        {
            if (problem)
            {
                std::rethrow_exception(problem);
            }
        }
        catch (const redlock::system_error& error)
        {
            say(error.code() == redlock::errc::lease_lost ? "lost" : error.what());
        }
        io.stop();
    };
    const std::chrono::milliseconds ttl{std::stoi(arguments[2])};
    asio::co_spawn(io, hold(locks, arguments[1], ttl), ended);
    io.run();
    return 0;
}
