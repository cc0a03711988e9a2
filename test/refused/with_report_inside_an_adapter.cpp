// SPDX-License-Identifier: BSL-1.0
// error: redlock::with_report must be the outermost adapter of a token
#include <redlock/redlock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/use_future.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

void run(redlock::lock_manager& locks, asio::cancellation_signal& stop)
{
    locks.async_acquire(
        "stock", 10s, asio::bind_cancellation_slot(stop.slot(), redlock::with_report(asio::use_future)));
}
