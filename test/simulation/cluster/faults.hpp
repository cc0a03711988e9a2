// SPDX-License-Identifier: BSL-1.0
// The faults of a simulated run.
#pragma once

#include "chance.hpp"
#include "trace_numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace redlock::test
{

struct fault;
class cluster_run;
class process;
class sim_master;
class virtual_link;

// Whether a fault keeps or breaks the assumptions.
inline constexpr bool keeps = false;
inline constexpr bool breaks = true;

/// What becomes of a kind of fault in guarded mode.
enum class in_guarded : std::uint8_t
{
    same,
    keeps_promises, // It breaks no assumption of guarded mode.
    only,           // It isn't drawn for plain seeds.
    excluded // It isn't drawn for guarded seeds: see docs/safety.md for what guarded mode doesn't promise.
};

/// Draws how long a fault lasts: shorter than every timeout, or longer.
clock::duration some_time(chance& draws);

/// A fault that is being injected, and that adds itself to the trace.
struct cluster_fault
{
    cluster_run& cluster;
    chance& draws;
    const fault& kind;

    /// Adds it to the trace. `about` is the number of a master or process.
    void tell(std::size_t about) const;
};

/// A fault at a master that was drawn for it. It is in the trace already, as are those below.
struct master_fault : cluster_fault
{
    std::size_t index;
    sim_master& master;

    /// Calls `undo` after `some_time`, unless the faults have ended before.
    void undo_later(std::function<void(sim_master&)> undo) const;
};

/// A fault on a connection that is open.
struct link_fault : cluster_fault
{
    std::shared_ptr<virtual_link> link;

    /// Calls `undo` after `some_time`, unless the faults have ended before.
    void undo_later(std::function<void(virtual_link&)> undo) const;
};

/// A fault of a process that is up.
struct process_fault : cluster_fault
{
    std::shared_ptr<test::process> process;
};

/// One kind of fault.
struct fault
{
    fault_number number;
    const char* name;
    const char* what; // A description for --faults.
    /// Exclusion can't be promised: a master loses keys, or clocks drift apart further than allowed.
    bool breaks_assumptions;
    /// Injects the fault and schedules its end. Its parameter says what has to be drawn for it.
    std::variant<
        void (*)(const cluster_fault&), void (*)(const master_fault&), void (*)(const link_fault&),
        void (*)(const process_fault&)>
        inject;
    in_guarded guarded = in_guarded::same;
};

/// All kinds of faults, in a fixed order.
const std::vector<fault>& all_faults();

std::vector<fault> network_faults();
std::vector<fault> master_faults();
std::vector<fault> process_faults();
std::vector<fault> guarded_faults();

/// Draws where the fault happens, and injects it. Injects nothing if there is no such connection or process.
void inject(const fault& what, cluster_run& cluster, chance& draws);

/// Draws a rate of a clock within the drift that the library allows, in millionths.
std::int64_t permitted_drift(const cluster_fault& what);
/// Draws a master, and adds the fault to the trace.
master_fault at_any_master(const cluster_fault& what);
/// Draws a process that is up, and adds the fault to the trace; null if there is none.
std::shared_ptr<process> any_process(const cluster_fault& what);
/// Draws an open connection of a master; null if it has none.
std::shared_ptr<virtual_link> any_link_of(sim_master& master, chance& draws);

} // namespace redlock::test
