// SPDX-License-Identifier: BSL-1.0
// Makes new masters, which have no keys, a guarded group: example_fencing_group <max_ttl in ms> <master>...
#include <redlock/provision.hpp>
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace asio = boost::asio;

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        std::cerr << "usage: " << argv[0] << " <max_ttl in ms> <master>...\n";
        return 64;
    }
    try
    {
        const std::vector<redlock::master> masters{argv + 2, argv + argc};
        redlock::config options{.masters = masters};
        options.node_timeout =
            std::chrono::milliseconds{500}; // Ten times the default: this machine may be slow.
        const redlock::provision_options group{
            .max_ttl = std::chrono::milliseconds{std::stol(argv[1])}, .fresh = true};
        redlock::provision_report report;
        asio::io_context io;
        redlock::error_code result;
        redlock::async_provision(
            io, options, group, report, [&](redlock::error_code error) { result = error; });
        io.run();
        std::cout << report << '\n';
        return result ? 1 : 0;
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
