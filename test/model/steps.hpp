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

inline constexpr action tick = make(kind::tick, 0, 0);

// Of an attempt.
constexpr action begin(int who)
{
    return make(kind::begin, who, 0);
}
constexpr action acquire(int who, int at)
{
    return make(kind::acquire, who, at);
}
constexpr action receive(int who, int at)
{
    return make(kind::receive, who, at);
}
constexpr action raise(int who, int at)
{
    return make(kind::raise, who, at);
}
constexpr action receive_raise(int who, int at)
{
    return make(kind::receive_raise, who, at);
}
constexpr action end(int who)
{
    return make(kind::end, who, 0);
}
constexpr action release(int who, int at)
{
    return make(kind::release, who, at);
}
constexpr action extend_begin(int who)
{
    return make(kind::extend_begin, who, 0);
}
constexpr action extend(int who, int at)
{
    return make(kind::extend, who, at);
}
constexpr action rejoin(int who, int at)
{
    return make(kind::rejoin, who, at);
}

// Of a guardian.
constexpr action quarantine(int who, int at)
{
    return make(kind::quarantine, who, at);
}
constexpr action watch(int who, int at)
{
    return make(kind::watch, who, at);
}
constexpr action read(int who, int at, int of)
{
    return make(kind::read, who, at, of);
}
constexpr action arm(int who, int at)
{
    return make(kind::arm, who, at);
}
constexpr action look_unarmed(int who, int at)
{
    return make(kind::look_unarmed, who, at);
}
constexpr action raise_floor(int who, int at)
{
    return make(kind::raise_floor, who, at);
}
constexpr action raise_other(int who, int at, int of)
{
    return make(kind::raise_other, who, at, of);
}
constexpr action accuse(int who, int at)
{
    return make(kind::accuse, who, at);
}

// Of a run of `provision`.
constexpr action move(int who, int at)
{
    return make(kind::move, who, at);
}
constexpr action move_wait(int who)
{
    return make(kind::move_wait, who, 0);
}
constexpr action move_check(int who, int at)
{
    return make(kind::move_check, who, at);
}
constexpr action move_decide(int who)
{
    return make(kind::move_decide, who, 0);
}
constexpr action move_arm(int who, int at)
{
    return make(kind::move_arm, who, at);
}

// Of a server.
constexpr action other_acquire(int at)
{
    return make(kind::other_acquire, 0, at);
}
constexpr action flush(int at)
{
    return make(kind::flush, 0, at);
}
constexpr action restart(int at)
{
    return make(kind::restart, 0, at);
}
constexpr action swap(int at)
{
    return make(kind::swap, 0, at);
}
constexpr action save(int at)
{
    return make(kind::save, 0, at);
}
constexpr action restore(int at)
{
    return make(kind::restore, 0, at);
}
constexpr action power_cut(int at)
{
    return make(kind::power_cut, 0, at);
}
constexpr action drop_hash(int at)
{
    return make(kind::drop_hash, 0, at);
}
constexpr action vanish(int at)
{
    return make(kind::vanish, 0, at);
}
constexpr action jump(int at)
{
    return make(kind::jump, 0, at);
}

// Joins schedules.
inline schedule operator+(schedule first, const schedule& second)
{
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

} // namespace model::steps
