// SPDX-License-Identifier: BSL-1.0
// The ways to specify masters. No connection is made, because that starts when the io_context runs.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

void show(std::string_view how, const redlock::master_list& masters)
{
    std::cout << how << ':';
    for (const redlock::master& each : masters)
    {
        std::cout << ' ' << each.name();
    }
    std::cout << '\n';
}

void make_lists()
{
    redlock::master_list listed{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
    redlock::master_list split = "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3";
    show("listed", listed);
    show("split", split);

    const std::vector<std::string> urls{{"redis://10.0.0.1"}, {"rediss://10.0.0.2:6380"}};
    show("from a range", urls);

    const std::string password = "p@ss,word";
    redlock::tcp_address address{.host = "10.0.0.1", .username = "locks", .password = password};
    show("field by field", {address, redlock::unix_address{.path = "/run/redis.sock"}});
}

void make_managers(asio::io_context& io, asio::thread_pool& pool, const std::vector<std::string>& urls)
{
    redlock::lock_manager listed{io, {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}};
    redlock::lock_manager split{io, "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3"};
    redlock::lock_manager ranged{io, urls};
    redlock::lock_manager locks{io, {.masters = urls, .key_prefix = "billing:"}};
    redlock::lock_manager strict{io, {.masters = urls, .order = redlock::order::strict}};
    redlock::lock_manager in_a_pool{
        pool, {.masters = {"redis://10.0.0.1", "redis://10.0.0.2"}, .node_timeout = 20ms}};
    redlock::lock_manager on_a_strand{asio::make_strand(pool), urls};
}

int main()
{
    try
    {
        asio::io_context io;
        asio::thread_pool pool{1};
        make_lists();
        make_managers(io, pool, {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"});
        // Ends what the managers have started.
        pool.stop();
    }
    catch (const std::exception& failure)
    {
        std::cerr << "managers: " << failure.what() << '\n';
        return 1;
    }
}
