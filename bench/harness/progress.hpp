// SPDX-License-Identifier: BSL-1.0
// A status line on stderr. On a terminal each text replaces the previous one.
#pragma once

#include <string_view>

namespace redlock::bench
{

class progress
{
  public:
    progress();
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;
    ~progress();

    void show(std::string_view what);
    /// Prints a line that isn't replaced.
    void print_line(std::string_view what);

  private:
    bool terminal_;
};

} // namespace redlock::bench
