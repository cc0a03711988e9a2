// SPDX-License-Identifier: BSL-1.0
// Delivers events to the user's observer in order, on the observer's executor.
#pragma once

#include <redlock/observer.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

namespace redlock::manager
{

/// The queue between the strand, which pushes events, and the observer's executor, which takes them. Thread-safe.
class notifier : public std::enable_shared_from_this<notifier>
{
  public:
    explicit notifier(observer to) : to_{std::move(to)} {}

    /// Queues an event, or counts it as dropped if the queue is full. Never calls the observer itself.
    void push(event what);

  private:
    void start_delivery();
    void deliver() noexcept;
    bool next(event& out);

    observer to_;
    std::mutex mutex_;
    std::deque<event> waiting_;
    std::size_t dropped_ = 0;
    bool delivering_ = false;
};

} // namespace redlock::manager
