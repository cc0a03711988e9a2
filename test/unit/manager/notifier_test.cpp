// SPDX-License-Identifier: BSL-1.0
// Events reach the observer in order and complete, in bursts of any size.
#include "manager/notifier.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace
{

/// An observer that records the numbers of events, and how many were dropped.
struct numbered_events
{
    explicit numbered_events(std::size_t max_waiting)
    {
        observer to;
        to.executor = io.get_executor();
        to.max_waiting = max_waiting;
        to.on_event = [this](const event& what)
        {
            if (const auto* dropped = std::get_if<events_dropped>(&what))
            {
                missing += dropped->count;
                return;
            }
            seen.push_back(std::get<master_up>(what).index);
        };
        notify = std::make_shared<manager::notifier>(std::move(to));
    }

    void push(std::size_t count)
    {
        for (; count > 0; --count)
        {
            notify->push(master_up{pushed++, {}, {}});
        }
    }
    void deliver()
    {
        io.restart();
        io.run();
    }

    boost::asio::io_context io{};
    std::shared_ptr<manager::notifier> notify{};
    std::vector<std::size_t> seen{};
    std::size_t pushed = 0;
    std::size_t missing = 0;
};

} // namespace

TEST_CASE("bursts of events of every size are delivered in order")
{
    for (std::size_t size = 1; size <= 200; ++size)
    {
        numbered_events events{1000};
        for (int burst = 0; burst < 3; ++burst)
        {
            events.push(size);
            events.deliver();
        }
        REQUIRE(events.seen.size() == 3 * size);
        CHECK(std::is_sorted(events.seen.begin(), events.seen.end()));
        CHECK(events.missing == 0);
    }
}

TEST_CASE("a long queue of events lets other handlers of the executor run in between")
{
    constexpr std::size_t many = 1000;
    numbered_events events{many};
    events.push(many);
    std::size_t seen_before = many;
    boost::asio::post(events.io, [&] { seen_before = events.seen.size(); });
    events.deliver();
    CHECK(events.seen.size() == many);
    CHECK(seen_before <= many / 10);
}

TEST_CASE("events beyond the limit are counted, and later ones are delivered")
{
    for (const std::size_t limit : {1U, 63U, 64U, 65U, 128U})
    {
        numbered_events events{limit};
        for (std::size_t burst = 1; burst <= 3; ++burst)
        {
            events.push(limit + 7);
            events.deliver();
            CHECK(events.seen.size() == burst * limit);
            CHECK(events.missing == burst * 7);
        }
    }
}

} // namespace redlock::test
