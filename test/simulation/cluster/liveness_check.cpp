// SPDX-License-Identifier: BSL-1.0
// Checks at the end of a run, when the faults have ended and no release is outstanding.
#include "cluster_run.hpp"

#include "core/leader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

constexpr std::chrono::milliseconds long_ttl = 60s;
constexpr std::chrono::milliseconds held_for = 20ms;

std::size_t own_resource(const process& of)
{
    return resource::own + static_cast<std::size_t>(of.number());
}

} // namespace

/// Returns whether an answer arrives well within the node timeout, as it has to in a suitable network.
bool cluster_run::answers_in_time(std::chrono::milliseconds ttl) const
{
    return 4 * (plan_.latency + plan_.jitter) < node_timeout_of(ttl);
}

std::vector<std::shared_ptr<process>> cluster_run::those_up() const
{
    std::vector<std::shared_ptr<process>> up;
    std::copy_if(
        processes_.begin(), processes_.end(), std::back_inserter(up),
        [](const auto& each) { return each->up() && !each->closing(); });
    return up;
}

/// Each process acquires a resource that no other one wants, in one round.
void cluster_run::check_one_round(const std::vector<std::shared_ptr<process>>& these)
{
    const auto done = std::make_shared<std::size_t>(0);
    for (const auto& each : these)
    {
        auto ended = [this, done, each](error_code error, const lease&)
        {
            ++*done;
            each->say(action::own_resource_acquired, error);
            // Some managers were shut down and not replaced.
            oracle_.check(
                !error || error == errc::closed, "availability",
                fmt::format("{} can't get its own: '{}'", each->name(), error.message()));
        };
        each->locks().async_try_acquire(
            resource_name(own_resource(*each)), {.ttl = long_ttl}, std::move(ended));
    }
    run_until(world_->now() + 2 * plan_.connect_timeout + 1s, [&] { return *done == these.size(); });
}

/// A new process without connections wins such a round; the others win it also if a minority of the masters hangs or
/// refuses.
void cluster_run::check_availability()
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
        world_->now() + plan_.probe_interval + plan_.response_timeout + plan_.connect_timeout +
        plan_.reconnect_delay_max + 100ms);
}

/// An extension that fails once is repeated before the lease is lost.
void cluster_run::check_kept()
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
    one.locks().async_acquire_kept(
        resource_name(resource::kept), {.ttl = ttl, .max_hold = no_limit}, std::move(ended));
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

/// Clients that lost together mustn't retry together: in a network in which every round takes the same time, a client
/// that is refused repeatedly doesn't always choose the longest delay.
void cluster_run::check_backoff()
{
    constexpr std::size_t seldom = 20; // Seeds. This check takes longer than most others.
    constexpr std::size_t tries = 20;
    if (oracle_.found() || !births_.one_in(seldom))
    {
        return;
    }
    for (const auto& each : masters_)
    {
        each->network = near();
        each->network.jitter = {};
        each->refuse(
            "turn", "-ERR this master has no queue\r\n"); // Nothing but the delay is left between rounds.
    }
    process& holder = add_process();
    process& rival = add_process();
    const auto has = std::make_shared<lease>();
    const auto told = std::make_shared<report>();
    const auto ended = std::make_shared<bool>(false);
    const auto round = [&](process& by, std::uint32_t rounds)
    {
        *ended = false;
        auto done = [has, ended, told](error_code, lease won)
        {
            *ended = true;
            if (won)
            {
                *has = std::move(won);
            }
        };
        const clock::time_point began = world_->now();
        by.locks().async_acquire(
            resource_name(resource::wanted), {.ttl = long_ttl, .wait = no_limit, .max_rounds = rounds}, *told,
            std::move(done));
        run_until(began + 10s, [&] { return *ended; });
        return world_->now() - began;
    };
    holder.open();
    round(holder, 1);
    rival.open();
    round(rival, 1); // Connects.
    const config mine = options();
    std::size_t long_ones = 0;
    for (std::size_t each = 0; *has && each < tries; ++each)
    {
        const clock::duration pause = round(rival, 2) - 2 * told->elapsed;
        const clock::duration most = std::max<clock::duration>(
            std::min(mine.retry_delay_min, mine.retry_delay_max),
            std::min<clock::duration>(8 * told->elapsed, mine.retry_delay_max));
        // If the longest delay is the shortest as well, there is nothing to choose.
        long_ones += told->rounds == 2 && most > 2ms && pause >= most * 4 / 5 ? 1U : 0U;
    }
    oracle_.check(
        long_ones < tries, "back-off",
        fmt::format("{} chooses the longest delay {} times in a row", rival.name(), long_ones));
    *has = {};
    for (const auto& each : masters_)
    {
        each->answer_as_usual();
        each->network = calm();
    }
    run_until(world_->now() + 100ms);
}

/// An acquire without a time limit.
struct cluster_run::attempt
{
    lease has{};
    report told{};
    clock::duration took{0};
    bool ended = false;
};

std::shared_ptr<cluster_run::attempt>
cluster_run::begin_attempt(process& by, std::size_t resource, std::optional<std::uint32_t> rounds)
{
    const auto one = std::make_shared<attempt>();
    auto done = [this, one, began = world_->now()](error_code, lease won)
    {
        one->has = std::move(won);
        one->took = world_->now() - began;
        one->ended = true;
    };
    by.locks().async_acquire(
        resource_name(resource), {.ttl = long_ttl, .wait = no_limit, .max_rounds = rounds}, one->told,
        std::move(done));
    return one;
}

/// One master refuses every release permanently: the releases of the others succeed, and outstanding keys are cleared.
void cluster_run::check_refusals()
{
    constexpr std::size_t seldom = 4;
    const auto all = those_up();
    if (oracle_.found() || all.empty() || masters_.size() < 3 || !answers_in_time(long_ttl) ||
        !births_.one_in(seldom))
    {
        return;
    }
    constexpr std::array<const char*, 3> refusals{
        "-ERR unknown command 'EVALSHA', with args beginning with: \r\n",
        "-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
        "-ERR an error that no client knows\r\n"};
    masters_[0]->refuse("release", refusals.at(births_.below(refusals.size())));
    process& one = *all.front();
    for (int times = 0; times < 10 && !oracle_.found(); ++times)
    {
        auto taken = begin_attempt(one, resource::refused, 1);
        run_until(world_->now() + 1s, [&] { return taken->ended; });
        const auto result = std::make_shared<std::optional<error_code>>();
        if (taken->has)
        {
            taken->has.async_release([result](error_code error) { *result = error; });
            run_until(world_->now() + 1s, [&] { return result->has_value(); });
            oracle_.check(
                *result && !**result, "settles",
                fmt::format("{} can't release, and one master of {} refuses", one.name(), masters_.size()));
        }
    }
    run_until(world_->now() + 1s + 5 * plan_.reconnect_delay_max);
    const std::size_t before = oracle_.releases_at(0);
    run_until(world_->now() + 2s);
    oracle_.check(
        oracle_.releases_at(0) == before, "settles",
        fmt::format("master 0 is sent {} releases in 2 s of rest", oracle_.releases_at(0) - before));
    masters_[0]->answer_as_usual();
}

/// Clients in the time-slot queue, without faults, with enough time to wait for a release.
void cluster_run::check_line()
{
    constexpr std::size_t seldom = 8; // Of a third of all seeds.
    if (oracle_.found() || plan_.retry_delay_max < 5 * held_for || !births_.one_in(seldom))
    {
        return;
    }
    for (const auto& each : masters_)
    {
        each->network.there = each->network.back = 50us;
        each->network.jitter = {};
    }
    process& one = add_process();
    process& another = add_process();
    one.open();
    another.open();
    check_one_round({one.shared_from_this(), another.shared_from_this()});
    check_turn(one, another);
    check_wrong_leader(one, another);
    for (const auto& each : masters_)
    {
        each->network = calm();
    }
    run_until(world_->now() + 100ms);
}

/// A client that acquires a resource again as soon as it is released leaves it to a waiting client, which acquires it
/// soon.
void cluster_run::check_turn(process& greedy, process& patient)
{
    // Its slot begins after one or two releases. It may lose a round, and its slot, and then the longest delay passes.
    const std::size_t most = 4 + 2 * static_cast<std::size_t>(plan_.retry_delay_max / held_for);
    auto taken = begin_attempt(greedy, resource::crowded, {});
    run_until(world_->now() + 1s, [&] { return taken->ended; });
    const auto waits = begin_attempt(patient, resource::crowded, {});
    for (std::size_t times = 0; times < most && taken->has && !waits->ended; ++times)
    {
        run_until(world_->now() + held_for);
        const auto released = std::make_shared<bool>(false);
        const clock::time_point began = world_->now();
        taken->has.async_release([released](error_code) { *released = true; });
        run_until(world_->now() + 1s, [&] { return *released; });
        taken = begin_attempt(greedy, resource::crowded, {});
        run_until(world_->now() + 1s, [&] { return taken->ended || waits->ended; });
        const clock::duration idle = world_->now() - began;
        oracle_.check(
            idle <= plan_.retry_delay_max / 3, "line",
            fmt::format(
                "the resource is free for {} us while {} waits for it", idle.count() / 1000, patient.name()));
    }
    oracle_.check(
        waits->ended, "line",
        fmt::format(
            "{} acquires the resource {} times, and {} still waits", greedy.name(), most, patient.name()));
    waits->has = {};
    run_until(world_->now() + 1s, [&] { return taken->ended && waits->ended; });
    taken->has = {};
    run_until(world_->now() + 100ms);
}

/// If only the queue master has lost a held key, its answer doesn't spare other clients the delay between two rounds.
void cluster_run::check_wrong_leader(process& holder, process& rival)
{
    constexpr std::uint32_t rounds = 40;
    const auto taken = begin_attempt(holder, resource::contested, 1);
    run_until(world_->now() + 1s, [&] { return taken->ended; });
    if (!taken->has || masters_.size() < 3)
    {
        return;
    }
    const config mine = options();
    const std::string contested = key_of(resource_name(resource::contested));
    const std::uint64_t key = core::stable_hash(contested);
    const auto claim = [key](const master& of)
    { return core::claim_to_lead(core::stable_hash(of.name()), key); };
    const auto leader = std::max_element(
        mine.masters.begin(), mine.masters.end(),
        [&](const master& left, const master& right) { return claim(left) < claim(right); });
    masters_[static_cast<std::size_t>(leader - mine.masters.begin())]->remove(contested);

    const auto tries = begin_attempt(rival, resource::contested, rounds);
    run_until(world_->now() + 10s, [&] { return tries->ended; });
    // The delay is half of the longest one in the mean, and at least every other round has one.
    oracle_.check(
        tries->ended && tries->took >= rounds * mine.retry_delay_max / 16, "line",
        fmt::format(
            "{} tries {} times in {} us", rival.name(), tries->told.rounds, tries->took.count() / 1000));
    taken->has = {};
    run_until(world_->now() + 100ms);
}

/// Each process holds a lease at its shutdown, on masters that have forgotten the release script.
void cluster_run::take_for_shutdown()
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
        each->locks().async_try_acquire(
            resource_name(own_resource(*each)), {.ttl = long_ttl}, std::move(ended));
    }
    run_until(world_->now() + 1s, [&] { return *done == all.size(); });
    run_until(world_->now() + 10 * (plan_.latency + plan_.jitter));
    for (const auto& each : masters_)
    {
        each->flush_scripts();
    }
}

/// The processes that ended in order.
void cluster_run::check_shutdown(const std::vector<std::shared_ptr<process>>& these)
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
                !masters_[index]->value(key_of(resource_name(own_resource(*each)))), "shutdown",
                fmt::format("master {} still has what {} held when it was shut down", index, each->name()));
        }
    }
    last_ones_.clear();
}

} // namespace redlock::test
