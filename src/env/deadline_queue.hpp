// SPDX-License-Identifier: BSL-1.0
// All deadlines of a manager in one queue, so that one timer of the system serves them all.
#pragma once

#include <redlock/clock.hpp>

#include <cstddef>
#include <vector>

namespace redlock::env
{

class deadline_queue;

/// Something that has to happen at a time. Disarms itself when it goes.
class deadline
{
  public:
    deadline() = default;
    deadline(const deadline&) = delete;
    deadline& operator=(const deadline&) = delete;

    bool armed() const noexcept { return queue_ != nullptr; }
    void disarm() noexcept;

  protected:
    virtual ~deadline() { disarm(); }
    /// It is disarmed when this is called, and may be armed again.
    virtual void on_deadline() = 0;

  private:
    friend class deadline_queue;

    deadline_queue* queue_ = nullptr;
    std::size_t place_ = 0;
    clock::time_point at_{};
};

/// A binary heap of deadlines that know their place: arming, disarming and moving cost O(log n).
class deadline_queue
{
  public:
    deadline_queue() = default;
    deadline_queue(const deadline_queue&) = delete;
    deadline_queue& operator=(const deadline_queue&) = delete;
    ~deadline_queue();

    /// Arms it, or moves it when it is armed.
    void arm(deadline& item, clock::time_point at);
    bool empty() const noexcept { return heap_.empty(); }
    /// The earliest. Only if there is one.
    clock::time_point next() const noexcept { return heap_.front()->at_; }
    /// Calls everything that is due at `now`, the earliest first; what is armed meanwhile for `now` or before
    /// waits.
    void expire(clock::time_point now);

  private:
    friend class deadline;

    void remove(deadline& item) noexcept;
    void put(std::size_t place, deadline* item) noexcept;
    void rise(std::size_t place) noexcept;
    void sink(std::size_t place) noexcept;

    std::vector<deadline*> heap_;
    clock::time_point not_before_ = clock::time_point::min(); // While expiring: just behind what is due.
};

} // namespace redlock::env
