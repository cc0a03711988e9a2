// SPDX-License-Identifier: BSL-1.0
// All deadlines of a manager in one queue, so that one timer of the system serves them all.
#pragma once

#include <redlock/clock.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace redlock::env
{

class deadline_queue;

/// Something that has to happen at a time. Disarms itself when it goes.
class deadline : public boost::intrusive::list_base_hook<
                     boost::intrusive::tag<struct lane_of_deadlines>,
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
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
    std::size_t place_ = 0; // In the heap, if it isn't in a lane.
    clock::time_point at_{};
};

/// Deadlines of one kind are armed for so much later each, and so come in their order: they queue up in a lane, where
/// arming and disarming cost the same however many there are. What fits behind none goes into a binary heap, of which each
/// deadline knows its place.
class deadline_queue
{
  public:
    deadline_queue() = default;
    deadline_queue(const deadline_queue&) = delete;
    deadline_queue& operator=(const deadline_queue&) = delete;
    ~deadline_queue();

    /// Arms it, or moves it when it is armed.
    void arm(deadline& item, clock::time_point at);
    /// The earliest; if there is none, the end of time, at which nothing is ever due.
    clock::time_point next() const noexcept;
    /// Calls everything that is due at `now`, the earliest first; what is armed meanwhile for `now` or before
    /// waits.
    void expire(clock::time_point now);

  private:
    friend class deadline;

    using lane = boost::intrusive::list<
        deadline,
        boost::intrusive::base_hook<boost::intrusive::list_base_hook<
            boost::intrusive::tag<struct lane_of_deadlines>,
            boost::intrusive::link_mode<boost::intrusive::auto_unlink>>>,
        boost::intrusive::constant_time_size<false>>;

    deadline* first_due(clock::time_point until) noexcept;
    lane* lane_for(clock::time_point at) noexcept;
    void remove(deadline& item) noexcept;
    void put(std::size_t place, deadline* item) noexcept;
    void rise(std::size_t place) noexcept;
    void sink(std::size_t place) noexcept;

    std::array<lane, 4> lanes_; // The usual kinds: rounds, signs of life, the two of a kept lease.
    std::vector<deadline*> heap_;
    clock::time_point not_before_ = clock::time_point::min(); // While expiring: just behind what is due.
};

} // namespace redlock::env
