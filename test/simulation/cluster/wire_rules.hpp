// SPDX-License-Identifier: BSL-1.0
// Rules for the commands on the wire: their order, owner ids, and which connections may be killed.
#pragma once

#include "simulation/sim_master.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace redlock::test
{

/// A broken promise.
struct violation
{
    std::string check; // Its name.
    std::string words;
};

/// Checks each command that a master executes. The rules don't depend on time or faults:
///   order      nothing of an owner id follows its release on the same connection
///   owner id   a master gets the SET of an owner id once, unless the lease was extended
///   rejoin     it gets it again only when a quorum has confirmed an extension
///   stranger   only the process that owns a connection may kill it, once in a handshake
///   repeat     no release follows on a connection that has answered one of the same owner id finally: with a number or a
///              permanent refusal; nor more than a few that it has answered with an unknown error
class wire_rules
{
  public:
    explicit wire_rules(std::size_t quorum) noexcept : quorum_{quorum} {}

    /// Returns a broken rule; empty if no rule is broken.
    std::optional<violation> look(
        std::size_t master, const std::string& run_id, const client_state& from, const std::string& what,
        const command& words, const std::string& reply);

    /// Returns owner ids with a master each that ran a SET of it and got no release after it.
    std::vector<std::pair<std::string, std::size_t>> owed() const;

  private:
    using connection = std::tuple<std::int64_t, std::size_t, std::string>;

    struct seen_of_owner
    {
        std::set<std::size_t> sent_to;     // Masters that got a SET of it, and no release since.
        std::set<std::size_t> set_at;      // Those of them on which it may have run.
        std::set<std::size_t> extended_at; // Those that have extended it.
        bool asked_to_extend = false;
        std::set<connection, std::less<>> released_on;
        std::set<connection, std::less<>> refused_on; // Permanently.
        std::map<connection, std::size_t, std::less<>> unknown_errors;
    };

    std::optional<violation> look_at_release(
        std::size_t master, const connection& on, const std::string& owner_id, const std::string& reply);

    std::size_t quorum_;
    std::map<connection, int, std::less<>> origins_;
    std::set<std::pair<connection, std::string>> kills_; // Sent on this connection, of this client id.
    std::map<std::string, seen_of_owner> owners_;
};

} // namespace redlock::test
