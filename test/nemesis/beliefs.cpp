// SPDX-License-Identifier: BSL-1.0
// Only clock readings that clients wrote down are compared: never how long anything took to arrive here.
#include "beliefs.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>

namespace redlock::nemesis
{

namespace
{

void read_line(const std::string& client, const std::string& line, diary& into)
{
    std::istringstream words{line};
    std::string verb;
    words >> verb;
    if (verb == "paused")
    {
        pause& one = into.pauses.emplace_back();
        words >> one.from >> one.to;
        return;
    }
    if (verb == "done")
    {
        return;
    }
    std::string id;
    instant now = 0;
    words >> id >> now;
    into.last = std::max(into.last, now);
    if (verb == "held" || verb == "kept")
    {
        belief& made = into.leases.emplace_back();
        made.client = client;
        made.id = id;
        made.is_kept = verb == "kept";
        made.from = now;
        words >> made.until >> made.resource >> made.owner >> made.began >> made.token;
        return;
    }
    const auto found = std::find_if(
        into.leases.rbegin(), into.leases.rend(), [&](const belief& each) { return each.id == id; });
    if (found == into.leases.rend())
    {
        return; // Kept, and released before its body had begun.
    }
    if (verb == "released")
    {
        found->released = true;
        return;
    }
    instant until = found->until;
    words >> until;
    found->until = std::max(found->until, until);
    if (verb == "ended")
    {
        found->ended = std::min(found->ended, now); // Reported again at its destruction.
    }
    if (verb == "lost")
    {
        found->lost = now;
    }
}

std::string in_words(const belief& one)
{
    return fmt::format(
        "{} {} ({}, token {}) from {} until {}, ended {}", one.client, one.id, one.is_kept ? "kept" : "held",
        one.token, one.from, one.until, one.ended == never ? "never" : std::to_string(one.ended));
}

/// In the order in which they were written down.
std::map<std::string, std::vector<belief>> by_resource(const std::vector<diary>& of)
{
    std::map<std::string, std::vector<belief>> sorted;
    for (const diary& each : of)
    {
        for (const belief& one : each.leases)
        {
            sorted[one.resource].push_back(one);
        }
    }
    for (auto& [resource, all] : sorted)
    {
        std::sort(
            all.begin(), all.end(),
            [](const belief& left, const belief& right) { return left.from < right.from; });
    }
    return sorted;
}

void find_missing(const std::vector<belief>& all, std::vector<std::string>& found)
{
    for (const belief& one : all)
    {
        if (one.token == 0)
        {
            found.push_back(fmt::format("none: {}", in_words(one)));
        }
    }
}

/// No token is issued twice (G2).
void find_repeated(const std::vector<belief>& all, std::vector<std::string>& found)
{
    std::map<std::uint64_t, const belief*> issued;
    for (const belief& one : all)
    {
        if (const auto [first, is_new] = issued.try_emplace(one.token, &one); !is_new)
        {
            found.push_back(fmt::format("twice: {}; and {}", in_words(*first->second), in_words(one)));
        }
    }
}

/// An acquire that begins after a token was issued gets a larger one (G3).
void find_unordered(std::vector<belief> all, std::vector<std::string>& found)
{
    std::sort(
        all.begin(), all.end(),
        [](const belief& left, const belief& right) { return left.token > right.token; });
    const belief* issued_first = nullptr; // Of those with a larger token.
    for (const belief& one : all)
    {
        if (issued_first != nullptr && one.began > issued_first->from)
        {
            found.push_back(
                fmt::format("begun later, and smaller: {}; than {}", in_words(one), in_words(*issued_first)));
        }
        if (issued_first == nullptr || one.from < issued_first->from)
        {
            issued_first = &one;
        }
    }
}

/// While there is one holder, tokens are issued in rising order, whenever their acquires began (G4). A lease that was over
/// before it was written down is left out: it isn't known when it was issued.
void find_falling(const std::vector<belief>& all, std::vector<std::string>& found)
{
    const belief* largest = nullptr;
    for (const belief& one : all)
    {
        if (one.from >= one.end())
        {
            continue;
        }
        if (largest != nullptr && one.token < largest->token && largest->end() <= one.from)
        {
            found.push_back(
                fmt::format("issued later, and smaller: {}; than {}", in_words(one), in_words(*largest)));
        }
        if (largest == nullptr || one.token > largest->token)
        {
            largest = &one;
        }
    }
}

} // namespace

diary read_diary(const std::string& client, std::string_view text)
{
    diary result;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n'))
    {
        read_line(client, std::string{text.substr(0, end)}, result);
        text.remove_prefix(end + 1);
    }
    return result;
}

std::vector<std::string> overlaps(const std::vector<diary>& of)
{
    std::vector<std::string> found;
    for (const auto& [resource, all] : by_resource(of))
    {
        const belief* longest = nullptr;
        for (const belief& one : all)
        {
            if (longest != nullptr && one.from < longest->end() && one.from < one.end())
            {
                found.push_back(fmt::format(
                    "{} for {} us: {}; and {}", resource,
                    (std::min(one.end(), longest->end()) - one.from) / 1000, in_words(*longest),
                    in_words(one)));
            }
            if (longest == nullptr || one.end() > longest->end())
            {
                longest = &one;
            }
        }
    }
    return found;
}

std::vector<std::string> wrong_tokens(const std::vector<diary>& of)
{
    std::vector<std::string> found;
    for (const auto& [resource, all] : by_resource(of))
    {
        find_missing(all, found);
        find_repeated(all, found);
        find_unordered(all, found);
        find_falling(all, found);
    }
    return found;
}

std::vector<std::string> late_losses(const std::vector<diary>& of)
{
    constexpr instant time_to_stop =
        200'000'000; // The longest stop margin: a holder that is paused then may be late.
    std::vector<std::string> found;
    for (const diary& each : of)
    {
        for (const belief& one : each.leases)
        {
            const instant stopped = std::min({one.ended, one.lost, each.last});
            const bool excused = std::any_of(
                each.pauses.begin(), each.pauses.end(),
                [&](const pause& gap) { return gap.from < stopped && gap.to > one.until - time_to_stop; });
            if (one.is_kept && stopped > one.until && !excused)
            {
                found.push_back(
                    fmt::format("{} us too late: {}", (stopped - one.until) / 1000, in_words(one)));
            }
        }
    }
    return found;
}

} // namespace redlock::nemesis
