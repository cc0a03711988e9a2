// SPDX-License-Identifier: BSL-1.0
// A deadline with a callback that the test provides.
#pragma once

#include "runtime/deadline_queue.hpp"

#include <functional>
#include <utility>

namespace redlock::test
{

class probe final : public runtime::deadline
{
  public:
    explicit probe(std::function<void()> action) : action_{std::move(action)} {}

  private:
    void on_deadline() override { action_(); }

    std::function<void()> action_;
};

} // namespace redlock::test
