// SPDX-License-Identifier: BSL-1.0
// Short names of the steps, for written schedules.
#pragma once

#include "protocol.hpp"

#include <vector>

namespace model::steps
{

using schedule = std::vector<action>;

constexpr action make(kind what, int who, int at, int of = 0)
{
    return {what, static_cast<number>(who), static_cast<number>(at), static_cast<number>(of)};
}

// Steps of a party alone, of a party at a server, of a party at a server that reads another one, and of a server.
template <kind what>
inline constexpr auto by = [](int who) { return make(what, who, 0); };
template <kind what>
inline constexpr auto by_at = [](int who, int at) { return make(what, who, at); };
template <kind what>
inline constexpr auto by_at_of = [](int who, int at, int of) { return make(what, who, at, of); };
template <kind what>
inline constexpr auto of_server = [](int at) { return make(what, 0, at); };

inline constexpr action tick = make(kind::tick, 0, 0);

// Of an attempt.
inline constexpr auto begin = by<kind::begin>;
inline constexpr auto acquire = by_at<kind::acquire>;
inline constexpr auto receive = by_at<kind::receive>;
inline constexpr auto raise = by_at<kind::raise>;
inline constexpr auto receive_raise = by_at<kind::receive_raise>;
inline constexpr auto end = by<kind::end>;
inline constexpr auto release = by_at<kind::release>;
inline constexpr auto extend_begin = by<kind::extend_begin>;
inline constexpr auto extend = by_at<kind::extend>;
inline constexpr auto rejoin = by_at<kind::rejoin>;

// Of a guardian.
inline constexpr auto quarantine = by_at<kind::quarantine>;
inline constexpr auto watch = by_at<kind::watch>;
inline constexpr auto read = by_at_of<kind::read>;
inline constexpr auto arm = by_at<kind::arm>;
inline constexpr auto look_unarmed = by_at<kind::look_unarmed>;
inline constexpr auto raise_floor = by_at<kind::raise_floor>;
inline constexpr auto raise_other = by_at_of<kind::raise_other>;
inline constexpr auto accuse = by_at<kind::accuse>;

// Of a run of `provision`.
inline constexpr auto move = by_at<kind::move>;
inline constexpr auto move_wait = by<kind::move_wait>;
inline constexpr auto move_check = by_at<kind::move_check>;
inline constexpr auto move_decide = by<kind::move_decide>;
inline constexpr auto move_arm = by_at<kind::move_arm>;

// Of a server.
inline constexpr auto other_acquire = of_server<kind::other_acquire>;
inline constexpr auto flush = of_server<kind::flush>;
inline constexpr auto restart = of_server<kind::restart>;
inline constexpr auto swap = of_server<kind::swap>;
inline constexpr auto save = of_server<kind::save>;
inline constexpr auto restore = of_server<kind::restore>;
inline constexpr auto power_cut = of_server<kind::power_cut>;
inline constexpr auto drop_hash = of_server<kind::drop_hash>;
inline constexpr auto vanish = of_server<kind::vanish>;
inline constexpr auto jump = of_server<kind::jump>;

// Joins schedules.
inline schedule operator+(schedule first, const schedule& second)
{
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

} // namespace model::steps
