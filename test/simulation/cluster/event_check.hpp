// SPDX-License-Identifier: BSL-1.0
// Checks the events of a process: none contradicts another, and nothing that happened is missing.
#pragma once

#include "support/request_reader.hpp"

#include <redlock/redlock.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace redlock::test
{

/// An event of a lease, of which an observer must be notified.
enum class expected_event : std::uint8_t
{
    failed_extension,
    loss,
    release
};

class event_check
{
  public:
    /// Checks an event against the previous ones. `manager` is the number of the process's manager that sent it, and `now`
    /// the time on the process's clock; empty if the event comes late. Returns a contradiction; empty if there is none.
    std::optional<std::string> notified(int manager, const event& what, std::optional<clock::time_point> now);
    /// Returns the end of the validity of a lease by the last event that tells it; empty if none does, or if events were
    /// dropped.
    std::optional<clock::time_point> valid_until(std::string_view owner_id) const;

    /// The observer must be notified of this event by the end.
    void expect(expected_event what, const std::string& owner_id) { expected_.emplace(what, owner_id); }
    /// Records a command that a master executed for the process. From it follow events: a connection that carries lock
    /// commands was up; a clock that jumped between two readings, and a release that is refused for good, are risks.
    void record(
        std::size_t master, const std::string& run_id, std::int64_t connection, clock::time_point at,
        const std::string& what, const std::string& reply);
    /// Records a reply as the master sent it: in guarded mode it may show the master's marker, from which events follow.
    void record_shown(
        std::size_t master, std::int64_t connection, const std::string& what, const std::string& reply);

    /// Returns events that never came, in words; empty if there is none. Only for a process whose only manager has
    /// ended in order.
    std::string missing() const;

  private:
    /// The marker of a master in a reply.
    struct shown_marker
    {
        std::string state;
        std::string why;
        std::string nonce;
        std::string replication_id;

        friend auto operator<=>(const shown_marker&, const shown_marker&) = default;
    };
    struct look_of_connection
    {
        shown_marker marker;
        bool was_current = false; // It was that of the server's incarnation.
    };
    using connection_key = std::tuple<std::size_t, std::string, std::int64_t>; // Master, run id, id.

    struct clock_readings
    {
        std::int64_t connection = 0; // Of the last one.
        std::optional<std::pair<clock::time_point, std::int64_t>>
            confirmed; // When, and what it showed, in us.
        std::pair<clock::time_point, std::int64_t> last{};
    };

    /// Returns whether a marker was shown that has all of this. An empty `why` or `nonce` stands for any.
    bool has_shown(std::string_view state, std::string_view why, std::string_view nonce) const;
    std::optional<std::string> decided(const round_decided& one, std::optional<clock::time_point> now);

    std::set<std::pair<expected_event, std::string>> expected_;
    std::set<std::pair<expected_event, std::string>> told_;
    // The replies of any master: an address may lead to another one for a while.
    std::set<std::string> refused_questions_;
    std::set<std::string, std::less<>> lost_; // Owner ids of leases that were reported lost.
    std::map<std::string, clock::time_point, std::less<>> valid_until_;   // By owner id.
    std::map<std::pair<int, std::size_t>, bool> up_;                      // By manager and master.
    std::map<std::pair<int, std::size_t>, std::set<error_code>> outages_; // Their reasons, in the same way.
    std::map<std::size_t, std::size_t> ups_;                              // By master.
    std::map<std::size_t, std::size_t> clock_warnings_;
    std::set<connection_key> used_;
    std::map<std::pair<std::size_t, std::string>, clock_readings> clocks_; // By master and run id.
    std::map<std::size_t, std::size_t> jumps_;                             // By master.
    // Connections on which a release was refused, with the probes since then, up to the one that shows that the refusal
    // has arrived.
    std::map<connection_key, int> refused_;
    std::map<std::size_t, std::size_t> refusal_warnings_;
    std::set<shown_marker> markers_; // Of any master, for the same reason.
    std::map<std::pair<std::size_t, std::int64_t>, look_of_connection>
        looks_;                                // The last ones, by master and connection.
    std::map<std::size_t, std::string> armed_; // The nonces of those that were shown last, and have arrived.
    std::set<std::pair<int, std::size_t>> in_quarantine_; // By manager and master, as it was told.
    std::size_t dropped_ = 0;
};

} // namespace redlock::test
