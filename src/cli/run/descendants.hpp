// SPDX-License-Identifier: BSL-1.0
// The processes around this one: those that descend from it, and those that could continue it.
#pragma once

#include <optional>
#include <vector>

#include <dirent.h>
#include <sys/types.h>

namespace redlock::cli
{

/// The processes that /proc shows. It keeps the descriptors that it needs, so that it can be read when there are no others.
class process_table
{
  public:
    process_table() = default;
    process_table(const process_table&) = delete;
    process_table& operator=(const process_table&) = delete;
    ~process_table();

    /// Opens it, once. Throws `system_error` if there are too few descriptors. Afterwards `is_open` returns false if there is
    /// no /proc, or the /proc of another namespace, whose numbers aren't those of this one.
    void open();
    bool is_open() const noexcept { return folder_ != nullptr; }

    /// Returns the living processes that descend from this one at this moment. A zombie is left out, unless one of its
    /// threads still runs. `excluded` are left out with all that descends from them. Nothing if it isn't open, or can't be
    /// read now: then errno has the reason.
    std::optional<std::vector<pid_t>> descendants(const std::vector<pid_t>& excluded = {});

  private:
    DIR* folder_ = nullptr;
    int spare_ = -1; // A descriptor for the file of a process.
};

/// Returns whether this process is in a job: an ancestor of the same session, such as a shell, is in another process
/// group, and can continue this one if it stops. In an orphaned group the kernel discards the stops of a terminal; what
/// reads them by signalfd has to do that itself. False without /proc, unless that ancestor is the parent.
bool can_be_continued() noexcept;

} // namespace redlock::cli
