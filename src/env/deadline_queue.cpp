// SPDX-License-Identifier: BSL-1.0
// All deadlines of a manager in one queue.
#include "env/deadline_queue.hpp"

#include <algorithm>

namespace redlock::env
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
    for (deadline* item : heap_)
    {
        item->queue_ = nullptr;
    }
}

void deadline_queue::arm(deadline& item, clock::time_point at)
{
    if (item.queue_ == nullptr)
    {
        heap_.push_back(&item);
        item.queue_ = this;
        item.place_ = heap_.size() - 1;
    }
    item.at_ = std::max(at, not_before_);
    rise(item.place_);
    sink(item.place_);
}

void deadline_queue::expire(clock::time_point now)
{
    // One that arms itself for a time that is past must not keep this loop going, nor take another's turn.
    not_before_ = now < clock::time_point::max() ? now + clock::duration{1} : now;
    for (std::size_t left = heap_.size(); left > 0 && !heap_.empty() && next() <= now; --left)
    {
        deadline& item = *heap_.front();
        remove(item);
        item.on_deadline();
    }
    not_before_ = clock::time_point::min();
}

void deadline_queue::remove(deadline& item) noexcept
{
    const std::size_t place = item.place_;
    item.queue_ = nullptr;
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

} // namespace redlock::env
