// SPDX-License-Identifier: BSL-1.0
// A process that holds a lock in guarded mode, and writes to a resource that compares tokens: for tests that stop the whole
// process.
//
// usage: late_writer TTL_MS PORT_OF_THE_RESOURCE MASTER...
// Acquires the lock, shows its token, and writes "token <token>, value <value>". Adds 1 to the value for each line of its input,
// without looking at the lease again, and writes "wrote <value>" or "refused".
#include "integration/fenced_value.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>

namespace asio = boost::asio;

int main(int count, char** values)
{
    const std::span arguments{values, static_cast<std::size_t>(count)};
    const std::chrono::milliseconds ttl{std::stoi(arguments[1])};
    redlock::config options;
    for (const char* const each : arguments.subspan(3))
    {
        options.masters.emplace_back(each);
    }
    options.guarded.emplace();
    options.node_timeout = ttl / 4;
    asio::thread_pool pool{1};
    redlock::lock_manager locks{pool, options};
    const redlock::lease held =
        locks
            .async_acquire(
                "account", redlock::acquire_options{.ttl = ttl, .wait = redlock::no_limit}, asio::use_future)
            .get();
    const std::uint64_t token = held.fencing_token().value();
    redlock::test::fenced_value account{redlock::test::control_client::to_port(std::stoi(arguments[2]))};
    std::int64_t value = account.open(token).value();
    std::cout << "token " << token << ", value " << value << std::endl;
    for (std::string line; std::getline(std::cin, line);)
    {
        const bool written = account.write(token, ++value);
        std::cout << (written ? "wrote " + std::to_string(value) : "refused") << std::endl;
    }
    return 0;
}
