// SPDX-License-Identifier: BSL-1.0
// Brings events to the user's observer, one after the other, on its executor.
#pragma once

#include <redlock/observer.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

namespace redlock::manager
{

/// Thread-safe: events come from the strand and are taken on the observer's executor.
class notifier : public std::enable_shared_from_this<notifier>
{
  public:
    explicit notifier(observer to) : to_{std::move(to)} {}

    /// Never calls the observer inside of the call.
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
