// SPDX-License-Identifier: BSL-1.0
// A process that has no file descriptor left.
#include "integration/fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <optional>
#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>

using namespace redlock::test;

namespace
{

/// While it exists, the process can open this number of further files.
class descriptors_left
{
  public:
    explicit descriptors_left(int count)
    {
        const int next = ::dup(0);
        ::close(next);
        if (next < 0 || ::getrlimit(RLIMIT_NOFILE, &before_) != 0)
        {
            throw std::runtime_error{"can't read the limit of descriptors"};
        }
        // New descriptors are the lowest free ones.
        rlimit few = before_;
        few.rlim_cur = static_cast<rlim_t>(next + count);
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    descriptors_left(const descriptors_left&) = delete;
    descriptors_left& operator=(const descriptors_left&) = delete;
    ~descriptors_left() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

} // namespace

TEST_CASE("a manager that gets no descriptor says so, and connects when it gets one", "[plain]")
{
    server at{server_options::plain()};
    event_log events{log_of::everything}; // Outlives the thread that delivers to it.
    event_loop loop;
    const boost::asio::steady_timer first{loop.context()}; // Opens what the context needs itself.
    redlock::config options = unhurried({address_of(at)});
    options.observer = events.observer();
    std::optional<redlock::lock_manager> locks;
    {
        const descriptors_left none{0};
        CHECK_THROWS_AS(locks.emplace(loop.context(), options), redlock::system_error);
    }
    {
        const descriptors_left for_the_alarm{1};
        locks.emplace(loop.context(), options);
        events.wait_for_down(0);
        CHECK(events.downs_of(0).front().reason == boost::asio::error::no_descriptors);
    }
    events.wait_for_up(0);
    CHECK_FALSE(try_acquire(*locks, "stock", {.ttl = long_ttl}).error);
}
