// SPDX-License-Identifier: BSL-1.0
// All deadlines of a manager in one queue, so that a single system timer serves them.
#pragma once

#include <redlock/clock.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace redlock::runtime
{

class deadline_queue;

/// The base of objects that are called at a point in time. The destructor disarms the deadline.
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
    /// Called when the time has come. The deadline is disarmed before the call, and may be armed again in it.
    virtual void on_deadline() = 0;

  private:
    friend class deadline_queue;

    deadline_queue* queue_ = nullptr;
    std::size_t place_ = 0; // The index in the heap, unless the deadline is in a lane.
    clock::time_point at_{};
};

/// A queue of deadlines, ordered by time.
///
/// Deadlines of one kind usually have the same duration, so they expire in the order in which they are armed. Each kind
/// therefore gets a lane: a list, in which arming and disarming take constant time. A deadline that can't be appended
/// to any lane is stored in a binary heap, and knows its index there.
class deadline_queue
{
  public:
    deadline_queue() = default;
    deadline_queue(const deadline_queue&) = delete;
    deadline_queue& operator=(const deadline_queue&) = delete;
    ~deadline_queue();

    /// Arms a deadline, or moves it if it is armed.
    void arm(deadline& item, clock::time_point at);
    /// Returns the earliest time, or the largest time point if no deadline is armed. Deadlines at the largest time
    /// point never expire.
    clock::time_point next() const noexcept;
    /// Calls the deadlines that are due at `now`, the earliest first. A deadline that is armed during this call expires
    /// in a later call, even if its time has passed.
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

    std::array<lane, 4> lanes_; // For the usual kinds: rounds, probes, and the two of a kept lease.
    std::vector<deadline*> heap_;
    clock::time_point not_before_ = clock::time_point::min(); // During expire(): just after its time.
};

} // namespace redlock::runtime
