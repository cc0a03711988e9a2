// SPDX-License-Identifier: BSL-1.0
// All deadlines of a manager in one queue.
#include "runtime/deadline_queue.hpp"

#include <algorithm>

namespace redlock::runtime
{

void deadline::disarm() noexcept
{
    if (queue_ != nullptr)
    {
        queue_->remove(*this);
    }
}

deadline_queue::~deadline_queue()
{
    for (lane& each : lanes_)
    {
        each.clear_and_dispose([](deadline* item) { item->queue_ = nullptr; });
    }
    for (deadline* item : heap_)
    {
        item->queue_ = nullptr;
    }
}

clock::time_point deadline_queue::next() const noexcept
{
    clock::time_point earliest = heap_.empty() ? clock::time_point::max() : heap_.front()->at_;
    for (const lane& each : lanes_)
    {
        earliest = each.empty() ? earliest : std::min(earliest, each.front().at_);
    }
    return earliest;
}

/// Returns the lane whose last deadline is the latest one not after `at`, so that each kind stays in its lane. If there
/// is none, returns an empty lane, or null.
deadline_queue::lane* deadline_queue::lane_for(clock::time_point at) noexcept
{
    lane* closest = nullptr;
    for (lane& each : lanes_)
    {
        if (each.empty())
        {
            closest = closest == nullptr ? &each : closest;
        }
        else if (each.back().at_ <= at)
        {
            const bool closer =
                closest == nullptr || closest->empty() || closest->back().at_ < each.back().at_;
            closest = closer ? &each : closest;
        }
    }
    return closest;
}

void deadline_queue::arm(deadline& item, clock::time_point at)
{
    if (item.queue_ != nullptr)
    {
        remove(item);
    }
    item.at_ = std::max(at, not_before_);
    if (lane* const fits = lane_for(item.at_))
    {
        fits->push_back(item);
    }
    else
    {
        heap_.push_back(&item);
        rise(heap_.size() - 1);
    }
    item.queue_ = this;
}

void deadline_queue::expire(clock::time_point now)
{
    const clock::time_point until = std::min(now, clock::time_point::max() - clock::duration{1});
    // A deadline that arms itself again for the past must not keep this loop running, nor expire ahead of others.
    not_before_ = until + clock::duration{1};
    while (deadline* const item = first_due(until))
    {
        remove(*item);
        item->on_deadline();
    }
    not_before_ = clock::time_point::min();
}

deadline* deadline_queue::first_due(clock::time_point until) noexcept
{
    deadline* earliest = heap_.empty() ? nullptr : heap_.front();
    for (lane& each : lanes_)
    {
        if (!each.empty() && (earliest == nullptr || each.front().at_ < earliest->at_))
        {
            earliest = &each.front();
        }
    }
    return earliest != nullptr && earliest->at_ <= until ? earliest : nullptr;
}

void deadline_queue::remove(deadline& item) noexcept
{
    item.queue_ = nullptr;
    if (item.is_linked())
    {
        item.unlink();
        return;
    }
    const std::size_t place = item.place_;
    deadline* last = heap_.back();
    heap_.pop_back();
    if (last != &item)
    {
        put(place, last);
        rise(place);
        sink(last->place_);
    }
}

void deadline_queue::put(std::size_t place, deadline* item) noexcept
{
    heap_[place] = item;
    item->place_ = place;
}

void deadline_queue::rise(std::size_t place) noexcept
{
    deadline* item = heap_[place];
    while (place > 0)
    {
        const std::size_t parent = (place - 1) / 2;
        if (heap_[parent]->at_ <= item->at_)
        {
            break;
        }
        put(place, heap_[parent]);
        place = parent;
    }
    put(place, item);
}

void deadline_queue::sink(std::size_t place) noexcept
{
    deadline* item = heap_[place];
    for (;;)
    {
        std::size_t child = 2 * place + 1;
        if (child >= heap_.size())
        {
            break;
        }
        if (child + 1 < heap_.size() && heap_[child + 1]->at_ < heap_[child]->at_)
        {
            ++child;
        }
        if (item->at_ <= heap_[child]->at_)
        {
            break;
        }
        put(place, heap_[child]);
        place = child;
    }
    put(place, item);
}

} // namespace redlock::runtime
