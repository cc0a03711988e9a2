// SPDX-License-Identifier: BSL-1.0
// The seam of the simulation: the library's clock, alarms, streams and random numbers, out of a virtual world.
#pragma once

#include "env/environment.hpp"
#include "virtual_world.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace redlock::test
{

class scripted_master;

/// Leads every stream to the scripted master that was put in the place of its host.
///
/// It may outlive the simulation, as the real one does, in a lease: only `now` is asked for then.
class virtual_environment final : public env::environment
{
  public:
    explicit virtual_environment(std::uint64_t seed) : world_{seed} {}

    virtual_world& world() const noexcept { return world_; }
    /// From now on `host` leads there. The master outlives every stream to it.
    void put(const std::string& host, scripted_master& at) { masters_[host] = &at; }
    /// How often an alarm was set for a time that was over: each costs the real one a system call and a turn.
    std::size_t late_alarms() const noexcept { return late_alarms_; }

    clock::time_point now() const noexcept override { return world_.now(); }
    void random(std::span<std::byte> out) const noexcept override;
    std::unique_ptr<env::stream> make_stream(env::scheduler& strand, const master& to) const override;
    std::unique_ptr<env::alarm> make_alarm(env::scheduler& strand) const override;

  private:
    mutable virtual_world world_;
    std::map<std::string, scripted_master*> masters_;
    mutable std::size_t late_alarms_ = 0;
};

} // namespace redlock::test
