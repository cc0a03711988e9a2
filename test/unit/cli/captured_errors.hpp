// SPDX-License-Identifier: BSL-1.0
// The messages that the command's parts write to stderr.
#pragma once

#include "support/loopback.hpp"

#include <string>

namespace redlock::test
{

/// Redirects stderr to a file while it exists. Every test in which say() is called needs one, because say() looks at
/// stderr once.
class captured_errors
{
  public:
    captured_errors();
    captured_errors(const captured_errors&) = delete;
    captured_errors& operator=(const captured_errors&) = delete;
    ~captured_errors();

    /// Returns what was written since the last call.
    std::string take();

  private:
    unique_fd file_;
    unique_fd former_;
};

} // namespace redlock::test
