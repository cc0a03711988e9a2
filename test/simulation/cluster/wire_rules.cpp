// SPDX-License-Identifier: BSL-1.0
// Rules for the commands on the wire.
#include "wire_rules.hpp"

#include "support/fake_replies.hpp"
#include "support/guarded_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace redlock::test
{

namespace
{

/// Returns true for errors after which a command isn't repeated.
bool is_permanent(const std::string& reply)
{
    constexpr std::array<std::string_view, 4> refusals{
        "-NOREPLICAS ", "-NOPERM ", "-WRONGTYPE ", "-ERR unknown command"};
    return std::any_of(
        refusals.begin(), refusals.end(), [&](std::string_view each) { return reply.starts_with(each); });
}

/// Returns true for errors after which neither the command nor any part of a script has run.
bool has_not_run(const std::string& reply)
{
    // In a script, no command follows the one that was refused: the SET is the last one.
    return is_permanent(reply) || reply.starts_with("-ERR The user executing the script can't ") ||
           reply.starts_with("-LOADING ") || reply.starts_with("-BUSY ") || reply.starts_with("-OOM ") ||
           reply.starts_with("-READONLY ") || reply.starts_with(no_vote) || reply == denied_key;
}

} // namespace

std::optional<violation> wire_rules::look(
    std::size_t master, const std::string& run_id, const client_state& from, const std::string& what,
    const command& words, const std::string& reply)
{
    // Client ids start again with each run of a server.
    const auto here = std::tie(from.id, master, run_id);
    auto connected = origins_.find(here);
    if (connected == origins_.end())
    {
        connected = origins_.emplace(here, from.origin).first;
    }
    if (what == "CLIENT KILL" && words.size() == 4)
    {
        if (!kills_.emplace(connected->first, words[3]).second)
        {
            return violation{
                "stranger", fmt::format("client {} kills connection {} twice", from.origin, words[3])};
        }
        if (reply != ":1\r\n")
        {
            return std::nullopt;
        }
        const auto killed = origins_.find(std::tuple{integer_in(words[3]).value_or(0), master, run_id});
        if (killed != origins_.end() && killed->second != from.origin)
        {
            return violation{
                "stranger",
                fmt::format("client {} kills a connection of client {}", from.origin, killed->second)};
        }
        return std::nullopt;
    }
    if (const auto raise = read_raise(what, words))
    {
        const bool is_late = owners_[raise->owner_id].released_on.contains(here);
        return is_late ? std::optional{violation{
                             "order",
                             fmt::format(
                                 "master {} gets a raise of {} after its release", master, raise->owner_id)}}
                       : std::nullopt;
    }
    const bool sets = what == "SET" && words.size() > 2;
    const bool calls_script = (what == "extend" || what == "release" || what == "ask") && words.size() > 4;
    if (!sets && !calls_script)
    {
        return std::nullopt;
    }
    const std::string& owner_id = sets ? words[2] : words[what == "ask" ? 5 : 4];
    seen_of_owner& seen = owners_[owner_id];
    if (what == "release")
    {
        return look_at_release(master, connected->first, owner_id, reply);
    }
    if (seen.released_on.contains(here))
    {
        return violation{
            "order", fmt::format("master {} gets {} of {} after its release", master, what, owner_id)};
    }
    if (what == "extend")
    {
        seen.asked_to_extend = true;
        if (reply == ":1\r\n")
        {
            seen.extended_at.insert(master);
        }
        return std::nullopt;
    }
    // A client that has to wait has set no key, and an unknown script has done nothing.
    if ((what == "ask" && reply.starts_with('*')) || reply.starts_with("-NOSCRIPT "))
    {
        return std::nullopt;
    }
    const bool again = !seen.sent_to.insert(master).second;
    if (!has_not_run(reply))
    {
        seen.set_at.insert(master);
    }
    if (again && !seen.asked_to_extend)
    {
        return violation{"owner id", fmt::format("master {} gets {} of {} twice", master, what, owner_id)};
    }
    if (again && seen.extended_at.size() < quorum_)
    {
        return violation{
            "rejoin", fmt::format(
                          "master {} gets {} of {} again, which {} masters have extended", master, what,
                          owner_id, seen.extended_at.size())};
    }
    return std::nullopt;
}

std::optional<violation> wire_rules::look_at_release(
    std::size_t master, const connection& on, const std::string& owner_id, const std::string& reply)
{
    constexpr std::size_t max_tries = 6; // The first one, and one after each of five delays.
    seen_of_owner& seen = owners_[owner_id];
    seen.sent_to.erase(master);
    seen.set_at.erase(master);
    if (seen.released_on.contains(on) || seen.refused_on.contains(on))
    {
        return violation{
            "repeat",
            fmt::format("master {} gets a release of {} again, which it has answered", master, owner_id)};
    }
    if (reply.starts_with(':'))
    {
        seen.released_on.insert(on);
    }
    else if (is_permanent(reply))
    {
        seen.refused_on.insert(on);
    }
    else if (reply.starts_with("-ERR ") && ++seen.unknown_errors[on] > max_tries)
    {
        return violation{
            "repeat",
            fmt::format("master {} has refused the release of {} {} times", master, owner_id, max_tries)};
    }
    return std::nullopt;
}

std::vector<std::pair<std::string, std::size_t>> wire_rules::owed() const
{
    std::vector<std::pair<std::string, std::size_t>> all;
    for (const auto& [owner_id, seen] : owners_)
    {
        for (const std::size_t master : seen.set_at)
        {
            all.emplace_back(owner_id, master);
        }
    }
    return all;
}

} // namespace redlock::test
