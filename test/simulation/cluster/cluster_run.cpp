// SPDX-License-Identifier: BSL-1.0
// A whole cluster run from one seed.
#include "cluster_run.hpp"

#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// In a minute of virtual time.
std::size_t max_steps(const plan& drawn)
{
    return 1'000'000 + 100'000 * drawn.clients * drawn.workers;
}

/// As `fresh_run_id` returns them at the beginning.
std::vector<std::string> first_run_ids(std::size_t masters)
{
    std::vector<std::string> ids;
    for (std::size_t master = 1; master <= masters; ++master)
    {
        ids.push_back("run-" + std::to_string(master));
    }
    return ids;
}

} // namespace

cluster_run::cluster_run(const plan& drawn, trace& told)
    : plan_{drawn},
      resources_{first_run_ids(options().masters.size())},
      told_{told},
      world_{std::make_shared<virtual_world>(chance::mixed(drawn.seed + 1), ties::by_chance)},
      masters_{make_masters()},
      group_{make_group()},
      oracle_{*this},
      picks_{chance::mixed(drawn.seed + 2)},
      births_{chance::mixed(drawn.seed + 3)},
      clock_was_set_(drawn.masters),
      could_evict_(drawn.masters),
      away_(drawn.masters),
      leftovers_(drawn.masters)
{
    const auto bound = static_cast<std::size_t>(plan_.max_drift());
    for (std::size_t index = 0; index < plan_.masters; ++index)
    {
        sim_master& one = *masters_[index];
        one.network = calm();
        one.show_database(static_cast<std::size_t>(plan_.database));
        one.password = plan_.locked_up ? observer_client::password : "";
        one.knows_hello = !plan_.old_masters;
        if (index < plan_.habits.size())
        {
            const habit& its = plan_.habits[index];
            for (const char* const refused : its.refuses)
            {
                one.habits.emplace(refused, its.with);
                const std::string_view kind{refused};
                // A release is refused, or a stale connection can't be found or killed.
                leftovers_[index] = leftovers_[index] || kind == "INFO" || kind.starts_with("EVAL") ||
                                    kind == "CLIENT ID" || kind == "CLIENT KILL" || kind == "GET" ||
                                    kind == "DEL";
            }
            one.fsync = its.fsync;
        }
        // Each has another offset, and some drift as much as allowed.
        one.clock_of_its_own().jump(world_->now(), births_.between(0s, 1000s));
        const auto rate = static_cast<std::int64_t>(births_.one_in(2) ? births_.below(bound + 1) : bound);
        one.clock_of_its_own().set_rate(world_->now(), births_.one_in(2) ? rate : -rate);
        one.witness = [this, index](const auto& from, const auto& what, const auto& words, const auto& reply)
        {
            oracle_.on_command(index, from, what, words, reply);
            note_command(from, what);
        };
    }
    if (group_)
    {
        group_->provision();
    }
    for (std::size_t index = 0; index < plan_.clients; ++index)
    {
        add_process().start();
    }
    for (const injection& each : plan_.injections)
    {
        world_->at(beginning + each.at, event_kind::timer, [this, each] { inject(each); });
    }
}

void cluster_run::note_command(const client_state& from, const std::string& what)
{
    if (what == awaited_.first && !mended_)
    {
        awaited_.first.clear();
        // Its connections can't end while one of them is served.
        auto later =
            [what = std::move(awaited_.second), by = processes_.at(static_cast<std::size_t>(from.origin) - 1)]
        {
            if (by->up())
            {
                what(*by);
            }
        };
        world_->at(world_->now(), event_kind::timer, std::move(later));
    }
}

sim_master& cluster_run::add_stranger()
{
    strangers_.push_back(std::make_unique<sim_master>(*world_, fresh_run_id()));
    sim_master& one = *strangers_.back();
    one.network = calm();
    one.witness = [this](const auto& from, const auto& what, const auto& words, const auto& reply)
    { oracle_.on_stranger(from, what, words, reply); };
    return one;
}

std::vector<std::unique_ptr<sim_master>> cluster_run::make_masters()
{
    std::vector<std::unique_ptr<sim_master>> all;
    for (std::size_t index = 0; index < plan_.masters; ++index)
    {
        all.push_back(std::make_unique<sim_master>(*world_, fresh_run_id()));
    }
    return all;
}

std::shared_ptr<guarded_masters> cluster_run::make_group() const
{
    if (!plan_.guarded)
    {
        return nullptr;
    }
    std::vector<sim_master*> all;
    std::vector<std::string> names;
    for (std::size_t index = 0; index < plan_.masters; ++index)
    {
        all.push_back(masters_[index].get());
        names.push_back(options().masters[index].name());
    }
    return std::make_shared<guarded_masters>(
        std::move(all), std::move(names), plan_.guarded->max_ttl, static_cast<std::size_t>(plan_.database));
}

const std::string& cluster_run::resource_name(std::size_t number)
{
    const bool is_beside = number == 1 && plan_.guarded && plan_.guarded->shared_counter;
    return resources_.name(is_beside ? resource::beside_first : number);
}

cluster_run::~cluster_run()
{
    for (const auto& each : processes_)
    {
        each->kill(false);
    }
    world_->end();
}

latency cluster_run::calm() const
{
    return {
        .there = plan_.latency,
        .back = plan_.latency,
        .jitter = plan_.jitter,
        .close_resets = plan_.close_resets,
        .joins = plan_.joins};
}

/// A network in which a master answers within half of the node timeout.
latency cluster_run::near() const
{
    const auto shortest = *std::min_element(plan_.ttls.begin(), plan_.ttls.end());
    const clock::duration most = clock::duration{node_timeout_of(shortest)} / 8;
    const clock::duration delay = std::min(plan_.latency, most);
    return {
        .there = delay,
        .back = delay,
        .jitter = std::min(plan_.jitter, most),
        .close_resets = plan_.close_resets,
        .joins = plan_.joins};
}

config cluster_run::options() const
{
    config all;
    const std::string credentials = plan_.locked_up ? fmt::format(":{}@", observer_client::password) : "";
    for (std::size_t index = 0; index < plan_.masters; ++index)
    {
        all.masters.emplace_back(fmt::format("redis://{}{}/{}", credentials, host_of(index), plan_.database));
    }
    all.node_timeout = plan_.node_timeout;
    all.drift_factor = plan_.drift_factor;
    all.connect_timeout = plan_.connect_timeout;
    all.reconnect_delay_min = std::min(all.reconnect_delay_min, plan_.reconnect_delay_max);
    all.reconnect_delay_max = plan_.reconnect_delay_max;
    all.retry_delay_min = std::min(all.retry_delay_min, plan_.retry_delay_max);
    all.retry_delay_max = plan_.retry_delay_max;
    all.order = plan_.strict ? order::strict : order::waiting;
    all.probe_interval = plan_.probe_interval;
    all.response_timeout = plan_.response_timeout;
    return all;
}

/// ttl x factor + 2 ms, in whole milliseconds.
std::chrono::milliseconds cluster_run::drift_of(std::chrono::milliseconds ttl) const
{
    return std::chrono::milliseconds{
        static_cast<std::int64_t>(std::ceil(static_cast<double>(ttl.count()) * plan_.drift_factor)) + 2};
}

std::chrono::milliseconds cluster_run::margin_of(std::chrono::milliseconds ttl) const
{
    return std::max(ttl / 10, 2 * drift_of(ttl));
}

std::chrono::milliseconds cluster_run::node_timeout_of(std::chrono::milliseconds ttl) const
{
    return plan_.node_timeout.value_or(std::clamp<std::chrono::milliseconds>(ttl / 10, 1ms, 50ms));
}

bool cluster_run::can_keep(std::chrono::milliseconds ttl) const
{
    const std::chrono::milliseconds late = ttl / 3 + (ttl / 3 + 9ms) / 10;
    return late + 2 * node_timeout_of(ttl) + margin_of(ttl) + drift_of(ttl) < ttl;
}

const process* cluster_run::process_of(int number) const
{
    const auto& one = processes_.at(static_cast<std::size_t>(number) - 1);
    return one->up() ? one.get() : nullptr;
}

std::vector<std::shared_ptr<virtual_link>> cluster_run::links_of(int process_number) const
{
    std::vector<std::shared_ptr<virtual_link>> all;
    for (const auto* const servers : {&masters_, &strangers_})
    {
        for (const auto& each : *servers)
        {
            for (auto& link : each->links())
            {
                if (link->at_master().origin == process_number)
                {
                    all.push_back(std::move(link));
                }
            }
        }
    }
    return all;
}

process& cluster_run::add_process()
{
    const int number = static_cast<int>(processes_.size()) + 1;
    processes_.push_back(std::make_shared<process>(*this, number, births_.fork()));
    process& fresh = *processes_.back();
    const auto bound = static_cast<std::size_t>(plan_.max_drift());
    const auto rate = static_cast<std::int64_t>(births_.one_in(2) ? births_.below(bound + 1) : bound);
    fresh.environment().jump(births_.between(0s, 1000s));
    fresh.environment().set_rate(births_.one_in(2) ? rate : -rate);
    return fresh;
}

void cluster_run::later(clock::duration length, std::function<void()> what)
{
    auto due = [this, what = std::move(what)]
    {
        if (!mended_)
        {
            what();
        }
    };
    world_->at(world_->now() + length, event_kind::timer, std::move(due));
}

void cluster_run::set_clock(std::size_t master, clock::duration by)
{
    masters_[master]->clock_of_its_own().jump(world_->now(), by);
    clock_was_set_[master] = true;
    oracle_.distrust_clocks();
    oracle_.jumps().set(
        master, by > clock::duration::zero(), world_->now(), group_ ? group_->nonce(master) : std::string{});
    oracle_.queues().forget(master, world_->now());
}

void cluster_run::let_evict(std::size_t master, bool may_evict)
{
    masters_[master]->maxmemory_policy = may_evict ? "allkeys-lru" : "noeviction";
    could_evict_[master] = could_evict_[master] || may_evict;
}

void cluster_run::change_group(std::chrono::milliseconds max_ttl, bool takeover)
{
    group_->may_have(max_ttl);
    changes_.emplace_back(
        *this, options(),
        provision_options{
            .action = provision_action::change_group, .max_ttl = max_ttl, .takeover = takeover});
}

void cluster_run::restart_clients_within(clock::duration within)
{
    for (const auto& each : processes_)
    {
        if (each->usable() && each->guarded())
        {
            later(
                births_.between(0ms, within),
                [one = each]
                {
                    if (one->usable())
                    {
                        one->drop_manager();
                    }
                });
        }
    }
}

bool cluster_run::send_away(std::size_t master)
{
    if (away_[master])
    {
        return false;
    }
    away_[master] = true;
    masters_[master]->door = entrance::refuses;
    return true;
}

void cluster_run::bring_back(std::size_t master)
{
    away_[master] = false;
    open_door(master);
}

void cluster_run::open_door(std::size_t master)
{
    if (!away_[master])
    {
        masters_[master]->door = entrance::open;
    }
}

void cluster_run::tell_fault(fault_number number, std::string_view name, std::size_t about)
{
    told_.add({about, static_cast<std::uint64_t>(number)});
    note_disturbance(number, about);
    if (told_.printing())
    {
        told_.print(world_->now(), "fault", world_->now(), fmt::format("{} ({})", name, about));
    }
}

/// Tells the rules of the queues what a fault may delay.
void cluster_run::note_disturbance(fault_number number, std::size_t about)
{
    switch (number)
    {
    case fault_number::client_pause:
    case fault_number::pause_at_grant:
    case fault_number::busy_caller:
    case fault_number::client_sleep:
    case fault_number::client_killed:
    case fault_number::client_killed_and_reset:
    case fault_number::shutdown:
    case fault_number::manager_dropped:
        oracle_.queues().disturb(static_cast<int>(about));
        oracle_.waits().disturb();
        break;
    case fault_number::new_client:
    case fault_number::cancellation:
    case fault_number::client_drift:
    case fault_number::eviction_policy:
        break;
    default:
        oracle_.queues().disturb();
        oracle_.waits().disturb();
    }
}

void cluster_run::inject(const injection& what)
{
    if (!mended_)
    {
        chance draws{what.seed};
        test::inject(all_faults()[what.kind], *this, draws);
    }
}

/// One handler or one event: what is due at the same time comes in any order. False if nothing is left until then.
bool cluster_run::step(clock::time_point limit)
{
    const bool due = !world_->empty() && world_->next() <= world_->now();
    if (!due || picks_.one_in(2))
    {
        const std::size_t first = picks_.below(processes_.size());
        for (std::size_t each = 0; each < processes_.size(); ++each)
        {
            process& one = *processes_[(first + each) % processes_.size()];
            if (one.step(picks_))
            {
                oracle_.after_step(one);
                return true;
            }
        }
    }
    if (!due)
    {
        oracle_.before_time_passes();
        if (world_->empty() || world_->next() > limit)
        {
            return false;
        }
        told_.add({static_cast<std::uint64_t>(world_->next().time_since_epoch().count())});
    }
    world_->run_next();
    return true;
}

/// Runs for a time, or until something holds. Returns false after a violation, or if it didn't come to hold.
bool cluster_run::run_for(clock::duration length, const std::function<bool()>& holds)
{
    const clock::time_point limit = world_->now() + length;
    while (!oracle_.found())
    {
        if (holds && holds())
        {
            return true;
        }
        if (world_->now() >= minute_ends_)
        {
            steps_ = 0;
            minute_ends_ = world_->now() + 1min;
        }
        if (++steps_ > max_steps(plan_))
        {
            oracle_.check(false, "steps", "time stands still");
            return false;
        }
        if (!step(limit))
        {
            world_->jump(std::max(limit - world_->now(), clock::duration{0}));
            return !holds || holds();
        }
    }
    return false;
}

clock::duration cluster_run::lasted() const
{
    return world_->now() - beginning;
}

} // namespace redlock::test
