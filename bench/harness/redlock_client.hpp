// SPDX-License-Identifier: BSL-1.0
// The library as an application uses it: co_await in an io_context with one thread, default options.
#pragma once

#include "harness/client.hpp"
#include "harness/masters.hpp"
#include "harness/task_group.hpp"

#include "support/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <redlock/redlock.hpp>

#include <cstddef>
#include <span>

namespace redlock::bench
{

namespace asio = boost::asio;

/// Returns the default options with a longer node timeout: with hundreds of workers, masters that share a machine
/// exceed the default.
config config_with_long_timeout(std::span<const test::server> masters);

/// Releases the lease and ignores the result: the library repeats an unconfirmed release.
asio::awaitable<void> release(lease& held);

/// Shuts the manager down and ignores the result. Keys that remain are counted or disappear with the masters.
asio::awaitable<void> shut_down(lock_manager& locks);

class redlock_client final : public client
{
  public:
    explicit redlock_client(const config& options);

    run_record run(const workload& load) override;

    /// Acquires and releases until exactly this many masters are disconnected. Throws if that takes too long.
    void await_disconnected(std::size_t masters);

  private:
    asio::awaitable<void> acquire_and_release(std::size_t worker, stopwatch& watch, run_record& done);
    asio::awaitable<void> probe(report& out);
    /// Runs until the outstanding replies have arrived.
    void drain();

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
};

} // namespace redlock::bench
