// SPDX-License-Identifier: BSL-1.0
// What a manager knows of the wait queues.
#include "manager/wait_queues.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace redlock::manager
{

waiter::waiter(wait_queues& queues, runtime::async_event& wake_event)
    : queues_{queues}, wake_event_{wake_event}, number_{++queues.last_number_}
{
    queues_.waiters_.insert(queues_.waiters_.end(), *this);
    ++queues_.waiting_;
    queues_.most_waiting_ = std::max(queues_.most_waiting_, queues_.waiting_);
}

waiter::~waiter()
{
    unlink();
    --queues_.waiting_;
}

void wait_queues::open(const runtime::environment& outside, std::size_t masters)
{
    std::array<unsigned char, net::claim::owner_id_length / 2> drawn{};
    outside.random(std::as_writable_bytes(std::span{drawn}));
    constexpr std::string_view digits = "0123456789abcdef";
    for (const unsigned char each : drawn)
    {
        manager_id_ += digits[each >> 4U];
        manager_id_ += digits[each & 15U];
    }
    identities_.resize(masters);
    suspect_until_.resize(masters);
}

waiter* wait_queues::find(std::uint64_t number) noexcept
{
    const auto found = waiters_.find(number);
    return found == waiters_.end() ? nullptr : &*found;
}

void wait_queues::note_departure(
    std::uint64_t number, std::string_view resource, std::chrono::milliseconds ttl)
{
    const std::size_t needed = std::max(min_departures, std::bit_ceil(most_waiting_));
    if (departures_.size() < needed)
    {
        std::vector<departure> more(needed);
        for (departure& each : departures_)
        {
            if (each.number != 0) // It would take the place of another one.
            {
                std::swap(more[each.number % needed], each);
            }
        }
        departures_ = std::move(more);
    }
    departure& place = departures_[number % departures_.size()];
    place.number = number;
    place.resource.assign(resource);
    place.ttl = ttl;
    place.answered_until = {};
}

wait_queues::departure* wait_queues::find_departure(std::uint64_t number) noexcept
{
    const bool possible = was_issued(number) && !departures_.empty();
    departure* const place = possible ? &departures_[number % departures_.size()] : nullptr;
    return place != nullptr && place->number == number ? place : nullptr;
}

void wait_queues::reconsider_all() noexcept
{
    for (waiter& each : waiters_)
    {
        each.reconsider();
    }
}

void wait_queues::identify(std::size_t master, std::string_view identity) noexcept
{
    identities_[master] = core::stable_hash(identity);
}

bool wait_queues::is_passed_over(std::size_t master, std::uint64_t key, clock::time_point now) const noexcept
{
    return suspect_until_[master] > now ||
           std::any_of(
               overruled_.begin(), overruled_.end(),
               [&](const overruled_master& each)
               { return each.master == master && each.key == key && each.until > now; });
}

void wait_queues::suspect(std::size_t master, clock::time_point now) noexcept
{
    suspect_until_[master] = last_doubt_ends_ = now + distrust;
}

void wait_queues::overrule(std::size_t master, std::uint64_t key, clock::time_point now)
{
    std::erase_if(
        overruled_, [&](const overruled_master& each) { return each.master == master && each.key == key; });
    if (overruled_.size() == max_overruled)
    {
        overruled_.erase(overruled_.begin()); // The oldest is forgotten, and may cost another question.
    }
    last_doubt_ends_ = now + distrust;
    overruled_.push_back({master, key, last_doubt_ends_});
}

void wait_queues::note(std::uint64_t key, bool others_wait, clock::time_point now) noexcept
{
    contended_resource& place = at(key);
    if (others_wait)
    {
        if (place.key != named(key))
        {
            contended_ += place.key == 0 ? 1U : 0U;
            place = {named(key)};
        }
        place.seen = now;
    }
    else if (is_contended(key) && now - place.seen > moment)
    {
        place.key = 0;
        --contended_;
    }
}

void wait_queues::note_second_queue(std::uint64_t key, std::size_t master, clock::time_point now) noexcept
{
    contended_resource& place = at(key);
    place.second_queue = master;
    place.second_seen = now;
}

std::optional<std::size_t> wait_queues::second_queue(std::uint64_t key, clock::time_point now) const noexcept
{
    const contended_resource& place = at(key);
    const bool seen =
        is_contended(key) && place.second_seen != clock::time_point{} && now - place.second_seen <= moment;
    return seen ? std::optional{place.second_queue} : std::nullopt;
}

} // namespace redlock::manager
