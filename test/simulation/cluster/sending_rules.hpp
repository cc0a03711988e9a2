// SPDX-License-Identifier: BSL-1.0
// Rules for what clients have sent, whether or not it arrived.
#pragma once

#include "simulation/sim_master.hpp"

#include <redlock/redlock.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::test
{

/// Compares the votes of decided rounds with the times at which their commands left the client:
///
/// - A vote is timed out only when its master has had a node timeout since the command was sent.
/// - A command that was sent when its round began isn't reported as unsent.
///
/// And masters that are reported as unresponsive with the replies that they owed:
///
/// - A master is unresponsive only when it has owed a reply for the response timeout.
///
/// All times are those of the clock of the process, unless it is said otherwise.
class sending_rules
{
  public:
    /// `kept_for`: how long bytes are kept. A round that is reported later isn't checked.
    explicit sending_rules(clock::duration kept_for) noexcept : kept_for_{kept_for} {}

    /// Records bytes that a process sends to a master. `late`: they may have waited for room before.
    void record(int process, std::size_t master, clock::time_point at, std::string_view bytes, bool late);
    /// Records that a process has closed a connection on which the master had owed it a reply for so long, in true time, as far as
    /// it can know: it looks for the reply once more, and may be suspended meanwhile.
    void left(int process, std::size_t master, clock::duration silence);
    /// Returns a contradiction if none of the last connections was closed by a process after so long a silence.
    std::optional<std::string> unresponsive(int process, std::size_t master, clock::duration silence) const;
    /// Returns a contradiction in the report of a round that a process is notified of; empty if there is none.
    std::optional<std::string> decided(int process, clock::time_point now, const round_decided& round) const;

  private:
    struct sending
    {
        clock::time_point at;
        std::string bytes;
        bool late;
    };

    /// Returns the first sending of a command of this owner id at `since` or later.
    const sending* first_of(
        int process, std::size_t master, operation what, const std::string& owner_id,
        clock::time_point since) const;
    /// Returns true if the command may have left before, in two pieces: a script is sent once more, in full, to a server that
    /// doesn't know it.
    bool may_repeat(int process, std::size_t master, clock::time_point since, const sending& one) const;

    clock::duration kept_for_;
    std::map<std::pair<int, std::size_t>, std::deque<clock::duration>>
        silences_;                                                   // At the end of a connection.
    std::map<std::pair<int, std::size_t>, std::deque<sending>> all_; // By process and master, in order.
};

} // namespace redlock::test
