// SPDX-License-Identifier: BSL-1.0
// Checks at the end of a run, when the faults have ended and no release is outstanding.
#include "cluster_run.hpp"

#include "core/queue_master.hpp"

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

constexpr std::chrono::milliseconds held_for = 20ms;
constexpr std::chrono::milliseconds longest_hold = 5s; // Of the checks that need a lease for that long.

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

/// Returns processes for a check. In one of two seeds, those that have lived through the faults come first, unless their options
/// allow too little for the check.
std::vector<std::shared_ptr<process>> cluster_run::take_processes(std::size_t count)
{
    std::vector<std::shared_ptr<process>> these;
    const bool are_limited = plan_.max_operations || plan_.max_waiting_acquires || plan_.max_outstanding_keys;
    if (births_.one_in(2) && !are_limited)
    {
        these = those_up();
        std::erase_if(
            these,
            [&](const auto& each) {
                return !each->usable() || each->guarded() != (group_ != nullptr) ||
                       oracle_.is_refused_queue(*each);
            });
        these.resize(std::min(these.size(), count));
        // For a second, a client waits elsewhere than at a master that didn't answer in time.
        run_for(these.empty() ? 0ms : 1100ms);
    }
    while (these.size() < count)
    {
        these.push_back(add_process().shared_from_this());
        these.back()->open();
    }
    return these;
}

/// An acquire without a time limit.
struct cluster_run::attempt
{
    lease has{};
    report told{};
    clock::duration took = clock::duration::max();
    bool ended = false;
};

std::shared_ptr<cluster_run::attempt>
cluster_run::begin_attempt(process& by, std::size_t resource, std::optional<std::uint32_t> rounds)
{
    const auto one = std::make_shared<attempt>();
    auto done = [this, one, &by, moment = oracle_.moment(), began = world_->now()](error_code, lease won)
    {
        if (won)
        {
            oracle_.issued(by, won, &one->told, moment);
        }
        one->has = std::move(won);
        one->took = world_->now() - began;
        one->ended = true;
    };
    by.locks().async_acquire(
        resource_name(resource), {.ttl = long_ttl(), .wait = no_limit, .max_rounds = rounds}, one->told,
        std::move(done));
    return one;
}

/// The same, and runs until it has ended.
std::shared_ptr<cluster_run::attempt>
cluster_run::make_attempt(process& by, std::size_t resource, std::optional<std::uint32_t> rounds)
{
    const auto one = begin_attempt(by, resource, rounds);
    run_for(10s, [&] { return one->ended; });
    return one;
}

void cluster_run::set_network(const latency& network)
{
    for (const auto& each : masters_)
    {
        each->network = network;
    }
}

/// Ends what a check has done to the masters.
void cluster_run::restore_masters()
{
    for (const auto& each : masters_)
    {
        each->answer_as_usual();
        each->resume();
    }
    set_network(calm());
}

/// Each process acquires a resource that no other one wants, in one round.
void cluster_run::check_one_round(const std::vector<std::shared_ptr<process>>& these, bool fresh)
{
    const auto done = std::make_shared<std::size_t>(0);
    const std::size_t raises = group_ ? oracle_.tokens()->raises() : 0;
    const bool is_usual = group_ && plan_.habits.empty() && !plan_.breaks_assumptions && counters_are_past();
    for (const auto& each : these)
    {
        const auto told = std::make_shared<report>();
        auto ended =
            [this, done, each, told, fresh, began = oracle_.moment()](error_code error, const lease& won)
        {
            if (won)
            {
                oracle_.issued(*each, won, told.get(), began);
            }
            ++*done;
            each->say(action::own_resource_acquired, error);
            // Some managers were shut down and not replaced.
            oracle_.check(
                !error || error == errc::closed, "availability", "{} can't get its own: {}", each->name(),
                told->to_string());
            check_all_asked(*each, *told, fresh);
        };
        each->locks().async_try_acquire(
            resource_name(own_resource(*each)), {.ttl = long_ttl()}, *told, std::move(ended));
    }
    run_for(2 * plan_.connect_timeout + 1s, [&] { return *done == these.size(); });
    oracle_.check(
        !is_usual || oracle_.tokens()->raises() == raises, "one round trip",
        "acquires without rivals need {} raises", group_ ? oracle_.tokens()->raises() - raises : 0);
}

/// Returns whether the clock of each master shows a larger number than all counters, so that a client's hint decides.
bool cluster_run::counters_are_past() const
{
    const std::uint64_t largest = group_->largest_counter();
    return std::all_of(
        masters_.begin(), masters_.end(),
        [&](const auto& each)
        {
            const auto shown = std::chrono::floor<std::chrono::microseconds>(each->now().time_since_epoch());
            return static_cast<std::uint64_t>(shown.count()) > largest;
        });
}

/// A new process is connected to every master that refuses it nothing that it needs.
void cluster_run::check_all_asked(const process& one, const report& told, bool fresh)
{
    for (std::size_t index = 0; fresh && index < told.masters().size(); ++index)
    {
        const auto& refuses = masters_[index]->habits;
        const bool needed = (refuses.contains("SELECT") && plan_.database != 0) ||
                            (refuses.contains("AUTH") && plan_.locked_up) || (group_ && is_impaired(index));
        oracle_.check(
            needed || masters_[index]->fsync > 0us || told.masters()[index].vote != vote::unsent,
            "availability", "{} hasn't asked master {}: {}", one.name(), index, told.to_string());
    }
}

/// A new process without connections wins such a round; the others win it also if a minority of the masters hangs or
/// refuses.
void cluster_run::check_availability()
{
    if (oracle_.found() || !answers_in_time(long_ttl()))
    {
        return;
    }
    const auto old_ones = those_up();
    process& fresh = add_process();
    fresh.open();
    check_one_round({fresh.shared_from_this()}, true);
    for (std::size_t index = 0; 2 * index + 2 < masters_.size(); ++index)
    {
        if (births_.one_in(2))
        {
            masters_[index]->hang();
        }
        else
        {
            masters_[index]->refuse(
                group_ ? "acquire" : "SET", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        }
    }
    check_one_round(old_ones);
    restore_masters();
    run_for(
        plan_.probe_interval + plan_.response_timeout + plan_.connect_timeout + plan_.reconnect_delay_max +
        100ms);
}

/// An extension that fails once is repeated before the lease is lost.
void cluster_run::check_kept()
{
    const std::chrono::milliseconds ttl = std::min<std::chrono::milliseconds>(500ms, long_ttl());
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
    run_for(1s, [&] { return *done; });
    if (!*kept)
    {
        return;
    }
    for (const auto& each : masters_)
    {
        each->answer("extend", {.bytes = "-BUSY Redis is busy running a script.\r\n"});
    }
    run_for(3 * ttl / 2);
    oracle_.check(kept->valid(), "kept", "{} has lost a lease with its first failed extension", one.name());
    one.expect_event(expected_event::failed_extension, std::string{kept->owner_id()});
    restore_masters();
    *kept = {};
    run_for(100ms);
}

/// Clients that lost together mustn't retry together: in a network in which every round takes the same time, a client
/// that is refused repeatedly doesn't always choose the longest delay.
void cluster_run::check_backoff()
{
    constexpr std::size_t seldom = 20; // Seeds. This check takes longer than most others.
    constexpr std::size_t tries = 20;
    if (oracle_.found() || long_ttl() < longest_hold || !births_.one_in(seldom))
    {
        return;
    }
    latency steady = near();
    steady.jitter = {};
    set_network(steady);
    for (const auto& each : masters_)
    {
        // Nothing but the delay is left between rounds.
        each->refuse("ask", "-ERR this master has no queue\r\n");
    }
    const auto both = take_processes(2);
    process& holder = *both[0];
    process& rival = *both[1];
    const auto held = make_attempt(holder, resource::wanted, 1);
    const auto connects = make_attempt(rival, resource::wanted, 1);
    const config mine = options();
    std::size_t long_ones = 0;
    for (std::size_t each = 0; (held->has || connects->has) && each < tries; ++each)
    {
        const auto again = make_attempt(rival, resource::wanted, 2);
        const clock::duration pause = again->took - 2 * again->told.elapsed;
        const clock::duration most = std::max<clock::duration>(
            std::min(mine.retry_delay_min, mine.retry_delay_max),
            std::min<clock::duration>(8 * again->told.elapsed, mine.retry_delay_max));
        // If the longest delay is the shortest as well, there is nothing to choose.
        long_ones += again->told.rounds == 2 && most > 2ms && pause >= most * 4 / 5 ? 1U : 0U;
    }
    oracle_.check(
        long_ones < tries, "back-off", "{} chooses the longest delay {} times in a row", rival.name(),
        long_ones);
    held->has = {};
    connects->has = {};
    restore_masters();
    run_for(100ms);
}

/// One master refuses every release permanently: the releases of the others succeed, and outstanding keys are cleared.
void cluster_run::check_refusals()
{
    constexpr std::size_t seldom = 4;
    const auto all = those_up();
    if (oracle_.found() || all.empty() || masters_.size() < 3 || !answers_in_time(long_ttl()) ||
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
        auto taken = make_attempt(one, resource::refused, 1);
        const auto result = std::make_shared<std::optional<error_code>>();
        if (taken->has)
        {
            taken->has.async_release([result](error_code error) { *result = error; });
            run_for(1s, [&] { return result->has_value(); });
            oracle_.check(
                *result && !**result, "settles", "{} can't release, and one master of {} refuses", one.name(),
                masters_.size());
        }
    }
    run_for(1s + 5 * plan_.reconnect_delay_max);
    const std::size_t before = oracle_.releases_at(0);
    run_for(2s);
    oracle_.check(
        oracle_.releases_at(0) == before, "settles", "master 0 is sent {} releases in 2 s of rest",
        oracle_.releases_at(0) - before);
    masters_[0]->answer_as_usual();
}

/// A released resource is granted to the only client that waits for it, whatever the hold was. Connections that break
/// after a long time are replaced at once: the delay that earlier attempts had reached is over.
void cluster_run::check_handover()
{
    constexpr std::size_t seldom = 4;
    if (oracle_.found() || !answers_in_time(long_ttl()) || !births_.one_in(seldom))
    {
        return;
    }
    constexpr std::array<clock::duration, 4> holds{0us, 300us, 5ms, 2s};
    const clock::duration hold =
        std::min<clock::duration>(holds.at(births_.below(holds.size())), long_ttl() / 4);
    set_network(near());
    const auto both = take_processes(2);
    process& holder = *both[0];
    process& waiter = *both[1];
    check_one_round(both);
    // Until the releases are answered, a client may wait elsewhere than at a master that has refused one before.
    run_for(20ms + 4 * (near().there + near().jitter));
    const auto taken = make_attempt(holder, resource::handed_over, {});
    const auto waits = begin_attempt(waiter, resource::handed_over, {});
    run_for(hold);
    // One master may hang, even that with the queue: it delays each round by a node timeout at most.
    const std::size_t odd = plan_.habits.size();
    const bool hangs = masters_.size() > 2 && births_.one_in(2);
    if (hangs)
    {
        masters_[births_.below(odd > 0 ? odd : masters_.size())]->hang();
    }
    // The holder may have a quorum without the queue master. The waiting client, which is granted the resource there in vain,
    // overrules it and waits at another master, or has the key there while the release looks for a client to wake.
    const std::string key = key_of(resource_name(resource::handed_over));
    const bool overtook = queue_master_of(key).value(key) != taken->has.owner_id();
    taken->has = {};
    // A message, or the heartbeat or poll that replaces it.
    const bool woken = !plan_.old_masters && !hangs && odd == 0 && !overtook;
    const clock::duration shown = (woken ? 0ms : 300ms) + (woken ? 2 : 5) * node_timeout_of(long_ttl());
    const clock::duration longest = shown + shown * plan_.max_drift() / 500'000; // By the slowest clock.
    const bool granted = run_for(longest, [&] { return waits->ended; });
    oracle_.check(
        granted, "liveness", "{} doesn't acquire in {} us what was held for {} us", waiter.name(),
        longest / 1us, hold / 1us);
    waits->has = {};
    restore_masters();

    run_for(1s);
    const auto before = links_of(waiter.number());
    for (const auto& each : before)
    {
        each->cut();
    }
    const auto replaced = [&]
    {
        const auto now = links_of(waiter.number());
        return static_cast<std::size_t>(std::count_if(
                   now.begin(), now.end(),
                   [&](const auto& each) {
                       return std::find(before.begin(), before.end(), each) == before.end();
                   })) >= masters_.size() - odd;
    };
    const clock::duration at_once = options().reconnect_delay_min + 2 * (plan_.latency + plan_.jitter) + 1ms;
    oracle_.check(
        run_for(at_once, replaced), "liveness", "{} doesn't replace its connections in {} us", waiter.name(),
        at_once / 1us);
    restore_masters();
    run_for(100ms);
}

/// Clients in the queue, without faults.
void cluster_run::check_queue()
{
    constexpr std::size_t seldom = 8; // Of a third of all seeds.
    if (oracle_.found() || !plan_.habits.empty() || !births_.one_in(seldom))
    {
        return;
    }
    set_network({.there = 50us, .back = 50us});
    const auto both = take_processes(2);
    process& one = *both[0];
    process& another = *both[1];
    check_one_round(both);
    check_greed(one, another);
    check_wrong_queue_master(one, another);
    restore_masters();
    run_for(100ms);
}

/// Returns the queue master of a key, if all masters can be reached.
sim_master& cluster_run::queue_master_of(const std::string& key)
{
    const std::uint64_t hash = core::stable_hash(key);
    const auto weight = [hash](const auto& of)
    { return core::queue_weight(core::stable_hash(of->run_id), hash); };
    return **std::max_element(
        masters_.begin(), masters_.end(),
        [&](const auto& left, const auto& right) { return weight(left) < weight(right); });
}

/// A client that acquires a resource again as soon as it is released leaves it to a waiting client.
void cluster_run::check_greed(process& greedy, process& patient)
{
    // The release of the first hold tells the greedy client that another one waits.
    constexpr std::size_t most = 2;
    // A message takes two passages, and so does a round. Without messages, the first in the queue polls.
    // In strict order, a newcomer that the queue master refuses may have cost a round, and its pause. So may two rounds of which
    // each has half of the masters.
    const clock::duration usual = plan_.strict || masters_.size() % 2 == 0 ? 2ms : 1ms;
    constexpr clock::duration without_message = 260ms;
    sim_master& queue_master = queue_master_of(key_of(resource_name(resource::crowded)));
    auto taken = make_attempt(greedy, resource::crowded, {});
    const auto waits = begin_attempt(patient, resource::crowded, {});
    for (std::size_t times = 0; times < most && taken->has && !waits->ended; ++times)
    {
        run_for(held_for);
        const auto released = std::make_shared<bool>(false);
        const clock::time_point began = world_->now();
        // A client that overtakes has a quorum without the queue master. While the waiting one has the key there, a
        // release finds nobody to wake.
        const bool overtook =
            queue_master.value(key_of(resource_name(resource::crowded))) != taken->has.owner_id();
        const clock::duration longest_idle = plan_.old_masters || overtook ? without_message : usual;
        taken->has.async_release([released](error_code) { *released = true; });
        run_for(1s, [&] { return *released; });
        taken = begin_attempt(greedy, resource::crowded, {});
        run_for(1s, [&] { return taken->ended || waits->ended; });
        const clock::duration idle = world_->now() - began;
        oracle_.check(
            idle <= longest_idle, "queue", "the resource is free for {} us while {} waits for it",
            in_us(idle), patient.name());
    }
    oracle_.check(
        waits->ended, "queue", "{} acquires the resource {} times, and {} still waits", greedy.name(), most,
        patient.name());
    waits->has = {};
    run_for(1s, [&] { return taken->ended && waits->ended; });
    taken->has = {};
    run_for(100ms);
}

/// If only the queue master has lost a held key, the others overrule it: a waiting client doesn't lose one round after
/// the other.
void cluster_run::check_wrong_queue_master(process& holder, process& rival)
{
    constexpr std::uint32_t most = 40;
    constexpr std::uint32_t rounds_in_a_second = 15; // Their pauses double.
    const auto taken = make_attempt(holder, resource::contested, 1);
    if (!taken->has || masters_.size() < 3 || long_ttl() < longest_hold)
    {
        return;
    }
    const std::string contested = key_of(resource_name(resource::contested));
    queue_master_of(contested).remove(contested);

    const auto tries = begin_attempt(rival, resource::contested, most);
    run_for(1s);
    oracle_.check(!tries->ended, "queue", "{} gives up after {} rounds", rival.name(), tries->told.rounds);
    taken->has = {};
    run_for(2s, [&] { return tries->ended; });
    oracle_.check(
        tries->ended && tries->has && tries->told.rounds <= 2 * rounds_in_a_second, "queue",
        "{} needs {} rounds", rival.name(), tries->told.rounds);
    tries->has = {};
    run_for(100ms);
}

/// Each process holds a lease at its shutdown, on masters that have forgotten the release script.
void cluster_run::take_for_shutdown()
{
    if (oracle_.found() || !answers_in_time(long_ttl()))
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
            resource_name(own_resource(*each)), {.ttl = long_ttl()}, std::move(ended));
    }
    run_for(1s, [&] { return *done == all.size(); });
    run_for(10 * (plan_.latency + plan_.jitter));
    oracle_.check_outstanding();
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
        // Whatever it held is released, with the script in full after the digest.
        const clock::duration longest = 8 * (plan_.latency + plan_.jitter) + 1ms;
        oracle_.check(
            !plan_.habits.empty() || !each->was_shut_down() || each->shutdown_took() <= longest, "shutdown",
            "{} is shut down in {} us, though all masters answer", each->name(),
            std::chrono::duration_cast<std::chrono::microseconds>(each->shutdown_took()).count());
        for (std::size_t index = plan_.habits.size(); index < masters_.size() && each->was_shut_down();
             ++index)
        {
            oracle_.check(
                !masters_[index]->value(key_of(resource_name(own_resource(*each)))), "shutdown",
                "master {} still has what {} held when it was shut down", index, each->name());
        }
    }
    last_ones_.clear();
}

} // namespace redlock::test
