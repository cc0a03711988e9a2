// SPDX-License-Identifier: BSL-1.0
// One line that says what is being done: it overwrites itself on a terminal.
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
    /// A line that stays.
    void print_line(std::string_view what);

  private:
    bool terminal_;
};

} // namespace redlock::bench
