// SPDX-License-Identifier: BSL-1.0
// -v: events as lines on stderr.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/observer.hpp>

#include <string>
#include <string_view>

namespace redlock::cli
{

/// Writes lines with the time since its construction, if it is on.
class verbose_log
{
  public:
    explicit verbose_log(bool on);

    bool on() const noexcept { return on_; }
    void line(std::string_view text) const;
    /// Writes an event of the manager. Omits rounds and extensions that end as the previous one did.
    void take(const redlock::event& what) const;

  private:
    bool is_new(const redlock::event& what) const;

    bool on_;
    clock::time_point start_;
    mutable std::string last_round_; // How the last round ended.
    mutable std::string last_extension_;
};

} // namespace redlock::cli
