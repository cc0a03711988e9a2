// SPDX-License-Identifier: BSL-1.0
// Rules for what clients have sent, whether or not it arrived.
#include "sending_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Clocks show whole nanoseconds, and the steps between two readings may be rounded down.
constexpr clock::duration clock_step = 1us;

bool is_of(operation what, const command& words)
{
    constexpr std::size_t left = 6;
    const std::string name = what_of(words);
    switch (what)
    {
    case operation::acquire:
        return name == "SET" || name == "ask" || name == "acquire";
    case operation::extend:
        return name == "extend";
    case operation::release:
        // One that is due, or that leaves a queue, belongs to no round.
        return name == "release" && (words.size() <= left || words[left] != "left");
    }
    return false;
}

/// Returns whether these bytes begin or end in the middle of a command.
bool is_in_pieces(const std::string& bytes)
{
    request_reader reader;
    reader.feed(bytes);
    try
    {
        while (reader.next())
        {
        }
    }
    catch (const malformed_request&)
    {
        return true;
    }
    return !reader.at_end();
}

/// Returns whether these bytes have a whole command of this kind and owner id.
bool has_command(const std::string& bytes, operation what, const std::string& owner_id)
{
    if (bytes.find(owner_id) == std::string::npos)
    {
        return false;
    }
    request_reader reader;
    reader.feed(bytes);
    try
    {
        while (const std::optional<command> words = reader.next())
        {
            const bool names_owner = std::find(words->begin(), words->end(), owner_id) != words->end();
            if (names_owner && is_of(what, *words))
            {
                return true;
            }
        }
    }
    catch (const malformed_request&)
    {
        return false; // They begin in the middle of a command.
    }
    return false;
}

} // namespace

void sending_rules::record(
    int process, std::size_t master, clock::time_point at, std::string_view bytes, bool late)
{
    std::deque<sending>& of_both = all_[{process, master}];
    while (!of_both.empty() && of_both.front().at + kept_for_ < at)
    {
        of_both.pop_front();
    }
    of_both.push_back({at, std::string{bytes}, late});
}

void sending_rules::left(int process, std::size_t master, clock::duration silence)
{
    constexpr std::size_t kept = 8; // An observer may be told late.
    std::deque<clock::duration>& of_both = silences_[{process, master}];
    of_both.push_back(silence);
    if (of_both.size() > kept)
    {
        of_both.pop_front();
    }
}

std::optional<std::string>
sending_rules::unresponsive(int process, std::size_t master, clock::duration silence) const
{
    const auto found = silences_.find({process, master});
    if (found == silences_.end() || std::any_of(
                                        found->second.begin(), found->second.end(),
                                        [&](clock::duration each) { return each >= silence - clock_step; }))
    {
        return std::nullopt;
    }
    return fmt::format(
        "master {} is unresponsive for client {}, which it owed a reply for {} us at most", master, process,
        found->second.back() / 1us);
}

bool sending_rules::may_repeat(
    int process, std::size_t master, clock::time_point since, const sending& one) const
{
    const std::deque<sending>& of_both = all_.at({process, master});
    return std::any_of(
        of_both.begin(), of_both.end(),
        [&](const sending& each)
        { return each.at >= since && each.at < one.at && is_in_pieces(each.bytes); });
}

const sending_rules::sending* sending_rules::first_of(
    int process, std::size_t master, operation what, const std::string& owner_id,
    clock::time_point since) const
{
    const auto found = all_.find({process, master});
    if (found == all_.end())
    {
        return nullptr;
    }
    const auto first = std::find_if(
        found->second.begin(), found->second.end(),
        [&](const sending& each) { return each.at >= since && has_command(each.bytes, what, owner_id); });
    return first == found->second.end() ? nullptr : &*first;
}

std::optional<std::string>
sending_rules::decided(int process, clock::time_point now, const round_decided& round) const
{
    const report& told = round.report;
    const clock::time_point began = now - told.elapsed;
    for (std::size_t master = 0; master < told.masters().size(); ++master)
    {
        const vote said = told.masters()[master].vote;
        // The extensions of a lease have the same owner id.
        if (said == vote::timed_out && told.operation != operation::extend)
        {
            const sending* const first =
                first_of(process, master, told.operation, round.owner_id, clock::time_point::min());
            if (first != nullptr && !first->late && now - first->at < told.node_timeout - clock_step &&
                !may_repeat(process, master, began - clock_step, *first))
            {
                return fmt::format(
                    "{} of {} by client {}: master {} timed out {} us after it was sent the command, and has "
                    "{} ms; the round took {} us",
                    to_string(told.operation), round.owner_id, process, master, (now - first->at) / 1us,
                    told.node_timeout.count(), told.elapsed / 1us);
            }
        }
        if (said == vote::unsent)
        {
            const sending* const first = first_of(process, master, told.operation, round.owner_id, began);
            if (first != nullptr && first->at <= began + clock_step)
            {
                return fmt::format(
                    "{} by client {}: master {} was sent the command, which is reported as unsent: {}",
                    to_string(told.operation), process, master, told.masters()[master].reason.message());
            }
        }
    }
    return std::nullopt;
}

} // namespace redlock::test
