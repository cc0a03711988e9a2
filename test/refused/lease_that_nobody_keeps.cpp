// SPDX-License-Identifier: BSL-1.0
// error: ignoring return
#include <redlock/redlock.hpp>

#include <boost/asio/use_future.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

void work_without_the_lock(redlock::lock_manager& locks)
{
    locks.async_acquire("stock", 10s, asio::use_future).get();
}
