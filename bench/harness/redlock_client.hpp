// SPDX-License-Identifier: BSL-1.0
// The library as a user has it: co_await in an io_context of one thread, all options at their defaults.
#pragma once

#include "harness/client.hpp"
#include "harness/task_group.hpp"

#include "support/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <redlock/redlock.hpp>

#include <cstddef>
#include <span>

namespace redlock::bench
{

/// All options at their defaults.
config config_for(std::span<const test::server> masters);
/// With a longer node timeout: where hundreds ask at once, the masters of one machine take turns for longer than the default.
config config_with_long_timeout(std::span<const test::server> masters);

/// Whatever comes of it: what is left on the masters goes with them, or is counted.
asio::awaitable<void> shut_down(lock_manager& locks);

class redlock_client final : public client
{
  public:
    explicit redlock_client(const config& options);

    run_record run(const workload& load) override;

    /// Locks and releases until exactly so many masters are without a connection. Throws if that takes too
    /// long.
    void await_disconnected(std::size_t masters);

  private:
    asio::awaitable<void> acquire_and_release(std::size_t worker, stopwatch& watch, run_record& done);
    asio::awaitable<void> probe(report& out);
    /// Whatever is on its way yet.
    void drain();

    asio::io_context io_{1};
    lock_manager locks_;
    task_group tasks_{io_};
};

} // namespace redlock::bench
