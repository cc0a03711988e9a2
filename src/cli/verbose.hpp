// SPDX-License-Identifier: BSL-1.0
// -v: what happens, in lines on stderr.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/observer.hpp>

#include <string_view>

namespace redlock::cli
{

/// Says lines with the time since this was made, or nothing.
class verbose_log
{
  public:
    explicit verbose_log(bool on);

    bool on() const noexcept { return on_; }
    void line(std::string_view text) const;
    /// An observer that writes the manager's events here. Must not outlive this; empty if this is off.
    redlock::observer observer() const;

  private:
    bool on_;
    clock::time_point start_;
};

} // namespace redlock::cli
