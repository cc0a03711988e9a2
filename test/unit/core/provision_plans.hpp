// SPDX-License-Identifier: BSL-1.0
// What the tests of all plans of provisioning share.
#pragma once

#include "core/members.hpp"
#include "core/provision_plan.hpp"
#include "core/replaced_groups.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace redlock::test
{

/// A replication id of 40 times this digit.
inline std::string replication_id(char digit)
{
    return std::string(core::replication_id_length, digit);
}

inline std::vector<provision_finding> findings(const core::provision_plan& of)
{
    std::vector<provision_finding> found;
    for (const core::provision_seat& each : of.masters)
    {
        found.push_back(each.found);
    }
    return found;
}

/// A group of masters with short names: their order is that of the seats.
struct named_group
{
    std::string name;
    std::vector<std::string> names;
    std::chrono::milliseconds max_ttl = std::chrono::seconds{60};
    core::arming_policy policy = core::arming_policy::clocks;

    core::member_record record() const { return {name, names}; }
    core::marker marker(
        const std::string& of, core::marker_state state,
        core::incarnation_end why = core::incarnation_end::created) const
    {
        return {
            name,
            core::seat_of(record(), of).value_or(1),
            static_cast<std::uint32_t>(names.size()),
            max_ttl,
            policy,
            state,
            why,
            "00000000000000aa",
            replication_id('1')};
    }
};

/// What masters show, by their names. One that isn't changed here is an empty server.
class shown_masters
{
  public:
    shown_masters() = default;
    explicit shown_masters(const named_group& armed)
    {
        for (const std::string& each : armed.names)
        {
            put(each, armed, core::marker_state::armed);
        }
    }

    core::provision_sight& operator[](const std::string& name)
    {
        const auto [at, is_new] = seen_.try_emplace(name);
        if (is_new)
        {
            at->second.replication_id = replication_id('1');
            at->second.maxmemory_policy = "noeviction";
        }
        return at->second;
    }
    shown_masters&
    put(const std::string& name, const named_group& of, core::marker_state state,
        core::incarnation_end why = core::incarnation_end::created)
    {
        core::provision_sight& seen = (*this)[name];
        seen.marker = core::to_text(of.marker(name, state, why));
        seen.members = core::to_text(of.record());
        seen.has_floor = seen.has_floor || state == core::marker_state::armed;
        return *this;
    }
    /// As a run leaves a master that it has moved to a group.
    shown_masters& move(const std::string& name, const named_group& to, const std::vector<named_group>& from)
    {
        const bool stays = core::seat_of(to.record(), name).has_value();
        put(name, to, stays ? core::marker_state::quarantine : core::marker_state::retired);
        std::vector<core::replaced_group> replaced;
        for (const named_group& each : from)
        {
            replaced.push_back({each.marker(each.names[0], core::marker_state::armed), each.record()});
        }
        (*this)[name].replaced = core::to_text(replaced);
        return *this;
    }
    shown_masters& stop(const std::string& name)
    {
        (*this)[name].is_known = false;
        return *this;
    }
    shown_masters& restart(const std::string& name)
    {
        (*this)[name].replication_id = replication_id('2');
        return *this;
    }
    shown_masters& empty(const std::string& name)
    {
        seen_.erase(name);
        (*this)[name];
        return *this;
    }
    std::vector<core::provision_sight> in_order(const std::vector<std::string>& names)
    {
        std::vector<core::provision_sight> all;
        for (const std::string& each : names)
        {
            all.push_back((*this)[each]);
        }
        return all;
    }

  private:
    std::map<std::string, core::provision_sight> seen_;
};

} // namespace redlock::test
