// SPDX-License-Identifier: BSL-1.0
// Makes masters a group of the guarded mode. The masters are given on the command line, and have to be empty.
#include <redlock/redlock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> make_group(asio::io_context& io, const redlock::config& masters)
{
    redlock::provision_report report;
    try
    {
        // Without `fresh` it takes a minute: the masters could have locks that other clients count on.
        const redlock::provision_options options{.max_ttl = 60s, .fresh = true};
        co_await redlock::async_provision(io, masters, options, report);
    }
    catch (const redlock::system_error&)
    {
        std::cerr << report << '\n'; // What was found on each master.
        throw;
    }
    std::cout << "group " << report.group << " has " << report.masters.size() << " masters\n";
}

int main(int count, char** words)
{
    try
    {
        redlock::config masters;
        masters.masters.assign(words + 1, words + count);
        asio::io_context io;
        asio::co_spawn(
            io, make_group(io, masters),
            [](const std::exception_ptr& thrown)
            {
                if (thrown)
                {
                    std::rethrow_exception(thrown);
                }
            });
        io.run();
    }
    catch (const std::exception& error)
    {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
