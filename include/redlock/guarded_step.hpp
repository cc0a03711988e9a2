// SPDX-License-Identifier: BSL-1.0
// The next step towards a vote of a master in guarded mode. Includes the standard library only, because the pure layers
// use it.
#pragma once

#include <redlock/detail/export.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock
{

/// The one next step towards a vote of a master that doesn't vote in guarded mode.
enum class guarded_step : std::uint8_t
{
    none,      ///< The master votes, or the reason why it doesn't says what to do.
    provision, ///< No master of the list shows a group: `async_provision`, on the right servers.
    finish_provision, ///< No master of the group was armed: repeat the run of `async_provision` that was interrupted.
    use_group_list,   ///< The list isn't that of the group: give its list.
    use_latest_group, ///< The master has left its group: give the list of the group that replaced it.
    use_recorded_name, ///< The master belongs to the group, but its name isn't on the record: use the recorded names.
    check_address,    ///< The master shows no group, and isn't on the record: check its address.
    check_empty,      ///< No record confirms the list, and masters show no group: check their addresses.
    wait_for_clients, ///< Keep a client connected: it arms the master.
    bring_back,       ///< Too few masters answer: bring back those that don't, with their data.
    mend_others,      ///< Masters of the list can't be members as they are, which prevents the rest.
    arm,              ///< `provision_action::arm`.
    arm_again,        ///< `provision_action::arm_again`.
    check_version     ///< The master's marker has an unknown form: check the version and the prefix.
};

/// Returns the name of the enumerator, such as "arm_again". Thread-safe.
REDLOCK_API std::string_view to_string(guarded_step value) noexcept;

/// The next step of one master, and what it depends on.
struct guarded_advice
{
    guarded_step step = guarded_step::none;
    /// The group that most masters of the list show, 16 hexadecimal digits; empty if none shows one.
    std::string group{};
    /// The names on the record of that group that aren't in the list. Empty if no master shows the record.
    std::vector<std::string> lacking{};
    /// The names in the list that aren't on that record. Empty if no master shows the record.
    std::vector<std::string> unknown{};
    /// The masters that the step is about: with `check_empty` and `arm_again` those that show no group, with `bring_back`
    /// those that give no answer, with `mend_others` those that prevent the rest.
    std::vector<std::string> concerned{};
    /// With `wait_for_clients`: the longest time that a client needs.
    std::chrono::milliseconds within{0};

    friend bool operator==(const guarded_advice&, const guarded_advice&) = default;
};

} // namespace redlock
