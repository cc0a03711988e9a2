// SPDX-License-Identifier: BSL-1.0
// error: g++ 12 destroys a temporary like this body twice
// only: ^[gc]\+\+ .* 12\.
#include <redlock/redlock.hpp>

#include <memory>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> run(redlock::lock_manager& locks)
{
    auto owned = std::make_shared<int>(1);
    co_await locks.async_with_lock(
        "stock", {.ttl = 10s, .max_hold = 1h}, [owned]() -> asio::awaitable<void> { co_return; });
}
