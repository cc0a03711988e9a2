// SPDX-License-Identifier: BSL-1.0
// The course of a run, and its end: the faults end, outstanding keys are released, and every resource can be acquired.
#include "cluster_run.hpp"

#include <algorithm>

namespace redlock::test
{

using namespace std::chrono_literals;

std::optional<violation> cluster_run::run()
{
    if (run_for(plan_.length))
    {
        mend_everything();
        tell_fault(fault_number::all_mended, "no faults any more", 0);
        clock::time_point mended_at = world_->now();
        const clock::time_point drained_at = settle();
        if (group_)
        {
            arm_masters(drained_at);
            mended_at = world_->now();
        }
        check_availability();
        check_kept();
        check_backoff();
        check_refusals();
        check_handover();
        check_queue();
        check_contention();
        take_for_shutdown();
        close(processes_);
        probe(mended_at);
    }
    return oracle_.found();
}

void cluster_run::mend_everything()
{
    mended_ = true;
    for (const auto& each : mendings_)
    {
        each();
    }
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        sim_master& one = *masters_[index];
        if (clock_was_set_[index])
        {
            // Keys that were set by a clock that was ahead would be there for hours.
            one.clock_of_its_own().jump(world_->now(), 24h);
            oracle_.queues().forget(index, world_->now());
        }
        one.door = entrance::open;
        one.role = "master";
        one.network = calm();
        one.answer_as_usual();
        one.resume();
        for (const auto& each : one.links())
        {
            each->let_go();
            each->let_go_of_replies();
        }
        one.heal();
    }
    for (const auto& each : processes_)
    {
        each->resume();
        each->stop();
    }
}

/// The longest time that a body runs if it ignores its cancellation, or needs longer than the margin to stop.
clock::duration cluster_run::longest_body() const
{
    return 3 * plan_.does.work + 3 * margin_of(plan_.longest_ttl());
}

/// Waits until outstanding keys are released: dead connections are detected and replaced, refused releases repeated. Returns
/// when the disks had written what was sent during the faults.
clock::time_point cluster_run::settle()
{
    const clock::duration notices = plan_.probe_interval + plan_.response_timeout + 1ms;
    const clock::duration reconnects = plan_.connect_timeout + plan_.reconnect_delay_max;
    const auto disks_are_idle = [&]
    {
        return std::none_of(
            masters_.begin(), masters_.end(), [](const auto& each) { return each->waits_for_disk(); });
    };
    // A slow disk delays what was sent for as long as the queue is, also what is sent after the reconnects. It is idle
    // for a round trip between two batches of releases.
    const auto drain = [&]
    {
        do
        {
            run_for(1h, disks_are_idle);
            run_for(100ms);
        } while (!disks_are_idle() && !oracle_.found());
    };
    drain();
    const clock::time_point drained_at = world_->now();
    bool were_idle = false;
    while (!were_idle && !oracle_.found())
    {
        run_for(longest_body() + plan_.probe_interval + notices + 2 * reconnects);
        // A disk that is still busy with what a broken connection had sent delays the next attempts to connect.
        were_idle = disks_are_idle();
        drain();
    }
    if (!oracle_.found() && !plan_.breaks_assumptions)
    {
        oracle_.check_released();
        oracle_.check_outstanding();
    }
    run_for(plan_.rest);
    return drained_at;
}

/// Ends these processes, some of them in order.
void cluster_run::close(std::vector<std::shared_ptr<process>> these)
{
    std::erase_if(these, [](const auto& each) { return !each->up(); });
    std::vector<std::shared_ptr<process>> in_order;
    for (const auto& each : these)
    {
        if (births_.one_in(2))
        {
            if (each->usable())
            {
                in_order.push_back(each);
            }
            each->shut_down(false);
        }
    }
    run_for(
        plan_.longest_ttl() + 12 * plan_.response_timeout + 1s,
        [&] {
            return std::none_of(these.begin(), these.end(), [](const auto& each) { return each->closing(); });
        });
    check_shutdown(these);
    for (const auto& each : in_order)
    {
        oracle_.check(
            !plan_.habits.empty() ||
                !answers_in_time(*std::min_element(plan_.ttls.begin(), plan_.ttls.end())) ||
                each->shutdown_error() != errc::unconfirmed,
            "shutdown", "{} isn't shut down in order, though all masters answer", each->name());
    }
    for (const auto& each : these)
    {
        if (!oracle_.found())
        {
            each->end_manager();
            // Until the releases that were begun are answered, or its clock says that this has taken too long.
            run_for(2 * plan_.response_timeout, [&] { return each->is_disconnected(); });
            const std::string left = each->leftovers();
            oracle_.check(left.empty(), "nothing left", "{}: {}", each->name(), left);
        }
    }
    // A master with a slow disk executes what it was sent before.
    const bool is_slow = std::any_of(
        masters_.begin(), masters_.end(), [](const auto& each) { return each->fsync > clock::duration{0}; });
    run_for(
        is_slow ? clock::duration{10s} : clock::duration{100ms},
        [&]
        {
            return std::all_of(
                masters_.begin(), masters_.end(), [](const auto& each) { return each->clients() == 0; });
        });
    for (std::size_t index = 0; index < masters_.size() && !oracle_.found(); ++index)
    {
        oracle_.check(masters_[index]->clients() == 0, "nothing left", "master {} still has clients", index);
    }
}

/// A new client acquires every resource after the faults have ended. It may have to wait for: a key that was set, or
/// arrived, just then, on the slowest clock; a body that can't be cancelled; the delay between two rounds
/// and before a connection; and a second for everything else. That holds in a network that is fast enough for the node
/// timeout: chance alone could keep a quorum from answering in time for much longer, in one that isn't.
void cluster_run::probe(clock::time_point mended_at)
{
    set_network(near());
    const clock::duration longest = plan_.longest_ttl();
    const clock::duration lapses = longest + longest * plan_.max_drift() / 500'000 + 1ms;
    // Nobody knows that a client without messages has gone, unless its release arrives: it is dropped after its deadline.
    constexpr clock::duration later = clock::duration{1s} / 64; // For each client ahead of it.
    const bool are_queued = std::any_of(
        masters_.begin(), masters_.end(), [](const auto& each) { return each->queue_key_count() > 0; });
    const clock::duration gone = later * static_cast<clock::rep>(are_queued ? oracle_.most_waiting() : 0);
    const clock::duration bound = lapses + longest_body() + plan_.retry_delay_max + plan_.connect_timeout +
                                  plan_.reconnect_delay_max + gone + 1s;
    const clock::time_point ends = std::max(mended_at + bound, world_->now() + 1s);
    process& fresh = add_process();
    fresh.open();
    std::size_t had = 0;
    for (std::size_t index = 0; index < plan_.resources; ++index)
    {
        auto done = [&had, &fresh](error_code error, const lease&)
        {
            fresh.say(action::probed, error);
            had += error ? 0U : 1U;
        };
        fresh.locks().async_acquire(
            resource_name(index), {.ttl = plan_.longest_ttl(), .wait = no_limit}, std::move(done));
    }
    const bool all = run_for(ends - world_->now(), [&] { return had == plan_.resources; });
    oracle_.check(
        all, "liveness", "{} of {} resources can't be had, {} ms after the last fault", plan_.resources - had,
        plan_.resources, std::chrono::duration_cast<std::chrono::milliseconds>(ends - mended_at).count());
    if (all)
    {
        close({processes_.back()});
    }
}

} // namespace redlock::test
