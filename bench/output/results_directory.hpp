// SPDX-License-Identifier: BSL-1.0
// The directory of the results: JSON, pictures and an HTML page.
#pragma once

#include "output/results.hpp"

#include <filesystem>

namespace redlock::bench
{

class results_directory
{
  public:
    /// Creates the directory. Throws if it isn't writable, so that this is reported before the measurement.
    explicit results_directory(std::filesystem::path place);

    /// Replaces the files of an earlier run.
    void write(const results& measured) const;
    std::filesystem::path page() const { return path_ / "index.html"; }

  private:
    std::filesystem::path path_;
};

} // namespace redlock::bench
