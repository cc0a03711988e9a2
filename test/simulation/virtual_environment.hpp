// SPDX-License-Identifier: BSL-1.0
// The seam of the simulation: one process's clock, alarms, streams and random numbers, from a virtual world.
#pragma once

#include "process_clock.hpp"
#include "runtime/environment.hpp"
#include "virtual_world.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test
{

class sim_master;
class virtual_alarm;

/// Returns the host of a master in a simulated run.
inline std::string host_of(std::size_t index)
{
    return "10.0.0." + std::to_string(index + 1);
}

/// Connects each stream to the simulated master that was registered for its host.
///
/// A lease may keep it beyond the simulation, like the real one; then only `now` is called.
class virtual_environment final : public runtime::environment
{
  public:
    /// Creates it in a separate world.
    explicit virtual_environment(std::uint64_t seed)
        : virtual_environment{std::make_shared<virtual_world>(seed)}
    {
    }
    /// `origin` identifies the process to the masters.
    explicit virtual_environment(std::shared_ptr<virtual_world> shared, int origin = 0)
        : world_{std::move(shared)}, origin_{origin}
    {
    }

    virtual_world& world() const noexcept { return *world_; }
    const std::shared_ptr<virtual_world>& shared_world() const noexcept { return world_; }
    /// Makes `host` lead to this master, which must outlive every stream to it.
    void put(const std::string& host, sim_master& at) { masters_[host] = &at; }
    /// Returns how many alarms, or streams, of this environment exist.
    std::size_t alarms() const noexcept { return alarms_.size(); }
    std::size_t streams() const noexcept { return streams_; }
    /// Returns how often an alarm was set. Each costs the real environment a system call, and a step when it is due.
    std::size_t alarms_set() const noexcept { return alarms_set_; }
    /// Returns how often one was set for a time in the past.
    std::size_t late_alarms() const noexcept { return late_alarms_; }

    /// The clock of the process. That of the world, unless it is changed here.
    const process_clock& clock_of_its_own() const noexcept { return clock_; }
    void set_rate(std::int64_t millionths);
    void jump(clock::duration by) const;

    /// Jumps at the n-th reading of the clock from now on: the process is paused between two of its readings.
    void jump_at_reading(std::size_t n, clock::duration by) noexcept
    {
        readings_left_ = n;
        jump_ = by;
    }

    clock::time_point now() const noexcept override;
    void random(std::span<std::byte> out) const noexcept override;
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler& strand, const master& to) const override;
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler& strand) const override;

  private:
    friend class virtual_alarm;

    void set_alarms_anew() const;

    std::shared_ptr<virtual_world> world_;
    int origin_;
    mutable process_clock clock_;
    mutable std::size_t readings_left_ = 0; // Until the jump; 0 for none.
    clock::duration jump_{};
    mutable std::vector<virtual_alarm*> alarms_;
    std::map<std::string, sim_master*> masters_;
    mutable std::size_t streams_ = 0;
    mutable std::size_t alarms_set_ = 0;
    mutable std::size_t late_alarms_ = 0;
};

} // namespace redlock::test
