// SPDX-License-Identifier: BSL-1.0
// What has to work when nothing fails any more, and everything that was owed is paid: a few things that can be said for
// sure only then.
#include "universe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

constexpr std::chrono::milliseconds long_ttl = 60s;

std::string own_resource(const process& of)
{
    return "own-" + std::to_string(of.number());
}

} // namespace

/// Whether an answer comes well within the node timeout, as it has to in a network that is set up well.
bool universe::answers_in_time(std::chrono::milliseconds ttl) const
{
    return 4 * (plan_.latency + plan_.jitter) < node_timeout_of(ttl);
}

std::vector<std::shared_ptr<process>> universe::those_up() const
{
    std::vector<std::shared_ptr<process>> up;
    std::copy_if(
        processes_.begin(), processes_.end(), std::back_inserter(up),
        [](const auto& each) { return each->up() && !each->closing(); });
    return up;
}

/// One round each, for what nobody else wants.
void universe::check_one_round(const std::vector<std::shared_ptr<process>>& these)
{
    const auto done = std::make_shared<std::size_t>(0);
    for (const auto& each : these)
    {
        auto ended = [this, done, each](error_code error, const lease&)
        {
            ++*done;
            each->say("gets its own", error);
            // Some were shut down, and no manager came after that.
            oracle_.check(
                !error || error == errc::closed, "availability",
                fmt::format("{} can't get its own: '{}'", each->name(), error.message()));
        };
        each->locks().async_try_acquire(own_resource(*each), {.ttl = long_ttl}, std::move(ended));
    }
    run_until(world_->now() + 2 * plan_.connect_timeout + 1s, [&] { return *done == these.size(); });
}

/// It is won by one who has just come, whose connections aren't there yet; and by those who have been there all the
/// time also when a minority of the masters hangs or refuses.
void universe::check_availability()
{
    if (oracle_.found() || !answers_in_time(long_ttl))
    {
        return;
    }
    const auto old_ones = those_up();
    process& fresh = add_process();
    fresh.open();
    check_one_round({fresh.shared_from_this()});
    for (std::size_t index = 0; 2 * index + 2 < masters_.size(); ++index)
    {
        if (births_.one_in(2))
        {
            masters_[index]->hang();
        }
        else
        {
            masters_[index]->refuse("SET", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        }
    }
    check_one_round(old_ones);
    for (const auto& each : masters_)
    {
        each->answer_as_usual();
        each->resume();
    }
    run_until(
        world_->now() + plan_.ping_interval + plan_.dead_after + plan_.connect_timeout +
        plan_.reconnect_delay_max + 100ms);
}

/// An extension that fails once is repeated before the lease is lost.
void universe::check_kept()
{
    constexpr std::chrono::milliseconds ttl = 500ms;
    const auto all = those_up();
    if (oracle_.found() || all.empty() || !answers_in_time(ttl) || !can_keep(ttl))
    {
        return;
    }
    process& one = *all.front();
    const auto kept = std::make_shared<lease>();
    const auto done = std::make_shared<bool>(false);
    auto ended = [kept, done](error_code, lease won)
    {
        *kept = std::move(won);
        *done = true;
    };
    one.locks().async_acquire_kept("kept", {.ttl = ttl, .max_hold = no_limit}, std::move(ended));
    run_until(world_->now() + 1s, [&] { return *done; });
    if (!*kept)
    {
        return;
    }
    for (const auto& each : masters_)
    {
        each->answer("extend", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
    }
    run_until(world_->now() + 3 * ttl / 2);
    oracle_.check(
        kept->valid(), "kept",
        fmt::format("{} has lost a lease with its first failed extension", one.name()));
    for (const auto& each : masters_)
    {
        each->answer_as_usual();
    }
    *kept = {};
    run_until(world_->now() + 100ms);
}

/// Everybody has something when it is shut down, on masters that have forgotten how to release it.
void universe::take_for_shutdown()
{
    if (oracle_.found() || !answers_in_time(long_ttl))
    {
        return;
    }
    const auto all = those_up();
    const auto done = std::make_shared<std::size_t>(0);
    for (const auto& each : all)
    {
        auto ended = [this, done](error_code, lease won)
        {
            last_ones_.push_back(std::move(won));
            ++*done;
        };
        each->locks().async_try_acquire(own_resource(*each), {.ttl = long_ttl}, std::move(ended));
    }
    run_until(world_->now() + 1s, [&] { return *done == all.size(); });
    run_until(world_->now() + 10 * (plan_.latency + plan_.jitter));
    for (const auto& each : masters_)
    {
        each->flush_scripts();
    }
}

/// Those that ended in order.
void universe::check_shutdown(const std::vector<std::shared_ptr<process>>& these)
{
    if (last_ones_.empty())
    {
        return;
    }
    for (const auto& each : these)
    {
        for (std::size_t index = 0; index < masters_.size() && each->was_shut_down(); ++index)
        {
            oracle_.check(
                !masters_[index]->value(key_of(own_resource(*each))), "shutdown",
                fmt::format("master {} still has what {} held when it was shut down", index, each->name()));
        }
    }
    last_ones_.clear();
}

} // namespace redlock::test
