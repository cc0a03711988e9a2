// SPDX-License-Identifier: BSL-1.0
// error: the body of async_with_lock must be callable
#include <redlock/redlock.hpp>

#include <memory>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> run(redlock::lock_manager& locks)
{
    co_await locks.async_with_lock("stock", {.ttl = 10s, .max_hold = 1h}, 42);
}
