// SPDX-License-Identifier: BSL-1.0
// Compares reports with the wire: each vote, reason and detail must be what that master answered to that owner id.
#pragma once

#include "request_reader.hpp"

#include <redlock/redlock.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::test
{

/// The answers of all masters, by owner id and operation. Each decided round needs an answer for each vote that no
/// earlier round has used, so that a vote, reason or detail that is left over from an earlier round is found.
class report_check
{
  public:
    /// `password`: that of the masters. A message that contains it isn't compared, because the library doesn't show it.
    explicit report_check(std::string_view password = {}) : password_{password} {}

    /// Records a command that a master executed for a process, and its reply. `distorted`: the connection has carried
    /// bytes that aren't the reply of its command, so replies can't be assigned to commands any more. Returns a
    /// contradiction if the command was reported as unsent.
    std::optional<std::string> record(
        std::size_t master, int process, clock::time_point at, const std::string& what, const command& words,
        const std::string& reply, bool distorted);

    /// The connection has carried bytes that aren't the reply of its command.
    void distort(int process, std::size_t master) { distorted_.emplace(process, master); }

    /// From now on, a master may say that it has too many clients, before any command.
    void crowd(std::size_t master) { crowded_.insert(master); }

    /// From now on, names lead this process to other masters, so its answers can't be assigned.
    void misdirect(int process) { misdirected_.insert(process); }
    bool misdirected(int process) const { return misdirected_.contains(process); }

    /// Returns a contradiction between a decided round and the wire; empty if there is none. Uses up the
    /// answers.
    std::optional<std::string> decided(int process, const round_decided& round);
    /// The same for the report that a caller received. Answers count from `since` on.
    std::optional<std::string>
    reported(int process, clock::time_point since, std::string_view owner_id, const report& told) const;
    /// The same for a failed acquire, whose owner id the caller doesn't know: the votes must be those of one of the owner
    /// ids that the process has sent for the key since then.
    std::optional<std::string>
    refused(int process, clock::time_point since, const std::string& key, const report& told) const;
    /// Returns a contradiction if the reason of an event isn't what the master has said.
    std::optional<std::string> told(int process, const event& what) const;
    /// The same for an inspection.
    std::optional<std::string>
    inspected(int process, clock::time_point since, const std::string& key, const inspection& seen) const;

  private:
    struct exchange
    {
        clock::time_point at;
        std::string reply;
        bool has_counter = false; // A grant in guarded mode.
    };
    using exchanges = std::map<std::size_t, std::vector<exchange>>; // By master, in order.

    /// What masters have answered about an owner id.
    struct history
    {
        std::map<operation, exchanges> answers;
        std::map<operation, exchanges> unused;    // Those that no decided round has used.
        std::set<std::size_t> reported_as_unsent; // Masters.

        void add(operation what, std::size_t master, const exchange& answer)
        {
            answers[what][master].push_back(answer);
            unused[what][master].push_back(answer);
        }
    };

    static std::span<const exchange>
    answers_since(clock::time_point since, const exchanges& answers, std::size_t master);
    bool is_checked(int process, std::size_t master) const
    {
        return !misdirected_.contains(process) && !distorted_.contains({process, master});
    }
    /// Returns true if a detail is the text of an error reply.
    bool shows(const short_text& detail, std::string_view reply) const;
    /// Returns true if a master has said these words to a process, or there are none.
    bool was_said(int process, std::size_t master, std::string_view words) const;
    /// Returns true if an inspection without an error is that of a reply.
    bool shows(const master_inspection& seen, std::string_view reply) const;
    /// Returns true if a vote follows from an answer: the same meaning, and for an error the same text.
    bool follows(operation what, const master_report& vote, const std::string& reply) const;
    const char*
    wrong_with(int process, std::size_t master, std::span<const exchange> answers, const report& told) const;
    std::optional<std::string>
    compare(int process, std::size_t master, std::span<const exchange> answers, const report& told) const;
    std::optional<std::string>
    compare(int process, clock::time_point since, const exchanges& answers, const report& told) const;

    std::string password_;
    std::unordered_map<std::string, history> histories_; // By owner id.
    std::map<std::tuple<int, std::string>, std::vector<std::pair<clock::time_point, std::string>>>
        sent_; // Owner ids.
    std::map<std::tuple<int, std::string>, exchanges> inspections_;
    std::set<std::tuple<int, std::size_t, int>> errors_; // Process, master, `master_errc`.
    std::set<std::tuple<int, std::size_t, std::string>>
        said_; // Process, master, words of an error as they are shown.
    std::set<std::pair<int, std::size_t>> distorted_;
    std::set<std::size_t> crowded_;
    std::set<int> misdirected_;
};

} // namespace redlock::test
