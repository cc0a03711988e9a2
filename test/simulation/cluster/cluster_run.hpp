// SPDX-License-Identifier: BSL-1.0
// A whole cluster run from one seed: client processes with the real library in them, masters, the network between them,
// faults, and an oracle. One thread, virtual time.
#pragma once

#include "operator_run.hpp"
#include "oracle.hpp"
#include "plan.hpp"
#include "process.hpp"
#include "resource_names.hpp"
#include "simulation/sim_master.hpp"
#include "token_rules.hpp"
#include "trace.hpp"
#include "trace_numbers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

class cluster_run
{
  public:
    cluster_run(const plan& drawn, trace& told);
    cluster_run(const cluster_run&) = delete;
    cluster_run& operator=(const cluster_run&) = delete;
    ~cluster_run();

    /// Runs to the end, or to the first violation.
    std::optional<violation> run();
    clock::duration lasted() const;

    const plan& drawn() const noexcept { return plan_; }
    trace& told() noexcept { return told_; }
    oracle& watch() noexcept { return oracle_; }
    virtual_world& world() noexcept { return *world_; }
    const std::shared_ptr<virtual_world>& shared_world() const noexcept { return world_; }
    const std::vector<std::unique_ptr<sim_master>>& masters() const noexcept { return masters_; }
    /// All processes so far, including those that are down.
    const std::vector<std::shared_ptr<process>>& processes() const noexcept { return processes_; }

    /// The masters as a group of guarded mode; null in a plain seed.
    const std::shared_ptr<guarded_masters>& group() const noexcept { return group_; }

    config options() const;
    const std::string& resource_name(std::size_t number);
    /// What clocks may drift apart by during a ttl.
    std::chrono::milliseconds drift_of(std::chrono::milliseconds ttl) const;
    /// How long before its end a kept lease is declared lost.
    std::chrono::milliseconds margin_of(std::chrono::milliseconds ttl) const;
    /// Returns true if a lease of this ttl can be kept.
    bool can_keep(std::chrono::milliseconds ttl) const;
    /// The node timeout for a ttl.
    std::chrono::milliseconds node_timeout_of(std::chrono::milliseconds ttl) const;
    /// Null if the process is down.
    const process* process_of(int number) const;
    std::vector<std::shared_ptr<virtual_link>> links_of(int process_number) const;

    // ---- For the faults.
    process& add_process();
    /// Calls `what` after `length`, unless the faults have ended before.
    void later(clock::duration length, std::function<void()> what);
    /// Moves a master's clock by `by`.
    void set_clock(std::size_t master, clock::duration by);
    bool clock_was_set(std::size_t master) const { return clock_was_set_[master]; }
    /// Sets a master's policy so that it may evict keys, or not. Its memory isn't full, so it evicts none.
    void let_evict(std::size_t master, bool may_evict);
    bool could_evict(std::size_t master) const { return could_evict_[master]; }
    /// Begins to replace the group by one with this `max_ttl`.
    void change_group(std::chrono::milliseconds max_ttl, bool takeover);
    /// Restarts each client within this time, since a manager keeps the group that it has found first.
    void restart_clients_within(clock::duration within);
    /// Refuses connections until `bring_back`. Returns false if the master is away already.
    bool send_away(std::size_t master);
    void bring_back(std::size_t master);
    /// Accepts connections, unless the master is away.
    void open_door(std::size_t master);
    /// Calls `what` when the faults end.
    void at_mending(std::function<void()> what) { mendings_.push_back(std::move(what)); }
    /// Returns an empty server that is in no list. It must neither vote nor be armed.
    sim_master& add_stranger();
    /// Calls `what` once, with the process, when a master has executed a command of this kind.
    void at_command(std::string kind, std::function<void(process&)> what)
    {
        awaited_ = {std::move(kind), std::move(what)};
    }
    /// Allows keys to stay on a master until their ttl ends: it refuses a release permanently, or a stale connection
    /// can't be killed.
    void allow_leftovers(std::size_t master) { leftovers_[master] = true; }
    bool leftovers(std::size_t master) const { return leftovers_[master]; }
    std::string fresh_run_id() { return "run-" + std::to_string(++last_run_); }
    /// Adds a fault to the trace. `about` is the number of a master or process.
    void tell_fault(fault_number number, std::string_view name, std::size_t about);

  private:
    std::vector<std::unique_ptr<sim_master>> make_masters();
    std::shared_ptr<guarded_masters> make_group() const;
    void note_command(const client_state& from, const std::string& what);
    void note_disturbance(fault_number number, std::size_t about);
    void inject(const injection& what);
    void mend_everything();
    bool step(clock::time_point limit);
    bool run_for(clock::duration length, const std::function<bool()>& holds = {});
    clock::time_point settle();
    // In guarded_end.cpp.
    void arm_masters(clock::time_point drained_at);
    void check_armed_in_time(clock::time_point drained_at);
    bool run_command(const provision_options& what, const config& masters, clock::duration bound);
    bool have_ended(clock::duration bound);
    bool retire_strangers(clock::duration bound);
    void prepare_change(clock::duration bound);
    void finish_change();
    void restart_clients(); // At once.
    clock::duration longest_quarantine() const;
    bool can_be_armed_by_clients() const;
    void arm_by_hand();
    bool is_impaired(std::size_t master) const;
    bool hides_marker(std::size_t master) const;
    bool are_armed(bool even_impaired) const;
    void run_until_armed(clock::duration bound, bool is_promised);
    void forbid_eviction(clock::duration bound);
    /// The longest ttl of the checks.
    std::chrono::milliseconds long_ttl() const;
    // In liveness_check.cpp, without faults but those that the check makes itself.
    void check_availability();
    void check_one_round(const std::vector<std::shared_ptr<process>>& these, bool fresh = false);
    bool counters_are_past() const;
    void check_all_asked(const process& one, const report& told, bool fresh);
    void check_kept();
    void check_backoff();
    void check_refusals();
    struct attempt;
    std::shared_ptr<attempt>
    begin_attempt(process& by, std::size_t resource, std::optional<std::uint32_t> rounds);
    std::shared_ptr<attempt>
    make_attempt(process& by, std::size_t resource, std::optional<std::uint32_t> rounds);
    void restore_masters();
    void set_network(const latency& network);
    void check_handover();
    void check_queue();
    // In contention_check.cpp.
    struct contender;
    void contend(const std::shared_ptr<contender>& one);
    void check_contention();
    void check_greed(process& greedy, process& patient);
    sim_master& queue_master_of(const std::string& key);
    void check_wrong_queue_master(process& holder, process& rival);
    void take_for_shutdown();
    void check_shutdown(const std::vector<std::shared_ptr<process>>& these);
    bool answers_in_time(std::chrono::milliseconds ttl) const;
    std::vector<std::shared_ptr<process>> those_up() const;
    std::vector<std::shared_ptr<process>> take_processes(std::size_t count);
    void close(std::vector<std::shared_ptr<process>> these);
    void probe(clock::time_point mended_at);
    clock::duration longest_body() const;
    latency calm() const;
    latency near() const;

    plan plan_;
    std::size_t last_run_ = 0;
    resource_names resources_;
    trace& told_;
    std::shared_ptr<virtual_world> world_;
    std::vector<std::unique_ptr<sim_master>> masters_;
    std::vector<std::unique_ptr<sim_master>> strangers_;
    std::shared_ptr<guarded_masters> group_;
    oracle oracle_;
    chance picks_;
    chance births_;
    std::vector<bool> clock_was_set_;
    std::vector<bool> could_evict_; // At any time so far.
    std::vector<bool> away_;
    std::vector<std::shared_ptr<process>> processes_;
    std::vector<operator_run> changes_; // And what they need.
    std::size_t steps_ = 0;             // In this minute.
    clock::time_point minute_ends_{};
    bool mended_ = false;
    std::vector<bool> leftovers_; // By master.
    std::pair<std::string, std::function<void(process&)>> awaited_;
    std::vector<lease> last_ones_;
    std::vector<std::function<void()>> mendings_;
};

} // namespace redlock::test
