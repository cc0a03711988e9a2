// SPDX-License-Identifier: BSL-1.0
// Where the results of a run are written: as JSON, as pictures, and as a page that shows both.
#pragma once

#include "output/results.hpp"

#include <filesystem>

namespace redlock::bench
{

class results_directory
{
  public:
    /// Makes it. Throws when nothing can be written there: that is better known before the minutes than after them.
    explicit results_directory(std::filesystem::path place);

    /// What stands there of an earlier run, under the same names, is replaced.
    void write(const results& measured) const;
    std::filesystem::path page() const { return path_ / "index.html"; }

  private:
    std::filesystem::path path_;
};

} // namespace redlock::bench
