// SPDX-License-Identifier: BSL-1.0
// -v: what happens, in lines on stderr.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/observer.hpp>

#include <string>
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
    /// Says what the manager reports. Rounds and extensions that go as the ones before are left out.
    void take(const redlock::event& what) const;

  private:
    bool is_new(const redlock::event& what) const;

    bool on_;
    clock::time_point start_;
    mutable std::string last_round_; // How the last one went.
    mutable std::string last_extension_;
};

} // namespace redlock::cli
