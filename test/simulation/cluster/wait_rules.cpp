// SPDX-License-Identifier: BSL-1.0
// A rule for the time that clients wait in the queue of a resource.
#include "wait_rules.hpp"

#include "queue_words.hpp"
#include "support/fake_replies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

/// The heartbeat of the first clients in the queue, with its jitter.
constexpr clock::duration heartbeat = 320ms;
/// The longest interval of a client that polls.
constexpr clock::duration poll = 250ms;
/// Times are whole milliseconds in commands and replies.
constexpr clock::duration rounding = 1ms;

} // namespace

void wait_rules::calm_down(clock::duration passage)
{
    calm_ = true;
    setting_.passage = passage;
    resources_.clear();
}

std::optional<violation>
wait_rules::look(const executed_command& seen, std::optional<clock::time_point> key_until)
{
    if (suspended())
    {
        return std::nullopt;
    }
    const std::string& key = seen.what == "SET" ? seen.words[1] : seen.words[queue_words::key];
    resource& of = resources_.try_emplace(key, resource{seen.master}).first->second;
    of.key_until.resize(setting_.masters);
    of.owners.resize(setting_.masters);
    pass_time(of, seen.at);
    const auto late = std::find_if(
        of.clients.begin(), of.clients.end(),
        [&](const auto& each)
        { return of.free - each.second.free > of.allowed - each.second.allowed + handover(of); });
    if (late != of.clients.end() && !of.moved)
    {
        return violation{
            "bounded wait", fmt::format(
                                "{} waits for {} at master {}, which is free for {} us, longer than {} us",
                                late->first, key, of.queue_master, (of.free - late->second.free) / 1us,
                                (of.allowed - late->second.allowed + handover(of)) / 1us)};
    }
    note(of, seen);
    of.key_until[seen.master] = key_until.value_or(clock::time_point{});
    return std::nullopt;
}

/// Adds the time since the last command during which the resource was free.
void wait_rules::pass_time(resource& of, clock::time_point now) const
{
    std::vector<clock::time_point> ends = of.key_until;
    const auto last = ends.begin() + static_cast<std::ptrdiff_t>(setting_.quorum) - 1;
    std::nth_element(ends.begin(), last, ends.end());
    const clock::time_point free_since = std::max(of.key_until[of.queue_master], *last);
    if (!of.clients.empty())
    {
        const clock::time_point unannounced = std::max(of.key_until[of.queue_master], held_until(of));
        const auto has_come = [&](clock::time_point when) { return when > of.seen && when < now; };
        if (has_come(free_since) || has_come(unannounced))
        {
            of.allowed += heartbeat;
        }
        of.free += std::max(now - std::max(free_since, of.seen), clock::duration{0});
    }
    of.seen = now;
}

/// Returns the time until which one owner has the keys of a quorum with the queue master, so that its release wakes the first
/// client; in the past if none has them. Other keys keep the resource from the others as well, but their release wakes nobody.
clock::time_point wait_rules::held_until(const resource& of) const
{
    std::vector<clock::time_point> ends;
    for (std::size_t master = 0; master < of.owners.size(); ++master)
    {
        if (of.owners[master] == of.owners[of.queue_master])
        {
            ends.push_back(of.key_until[master]);
        }
    }
    if (ends.size() < setting_.quorum)
    {
        return clock::time_point{};
    }
    const auto last = ends.begin() + static_cast<std::ptrdiff_t>(setting_.quorum) - 1;
    std::nth_element(ends.begin(), last, ends.end(), std::greater{});
    return *last;
}

clock::duration wait_rules::handover(const resource& of) const
{
    const bool all_receive = std::all_of(
        of.clients.begin(), of.clients.end(), [](const auto& each) { return each.second.receives; });
    return (all_receive ? clock::duration{0} : poll) + 2 * setting_.passage + rounding;
}

/// Notes who waits, and whose rounds come first.
void wait_rules::note(resource& of, const executed_command& seen) const
{
    const bool asks = seen.what == "ask" && seen.words.size() >= queue_words::ask_count;
    const bool releases = seen.what == "release" && seen.words.size() > queue_words::release_owner_id + 1;
    if ((seen.what == "SET" && seen.reply == "+OK\r\n") || (asks && seen.reply.starts_with(':')))
    {
        const std::string& owner_id = seen.words[asks ? queue_words::ask_owner_id : 2];
        of.allowed += of.owner_ids.insert(owner_id).second ? handover(of) : clock::duration{0};
        of.owners[seen.master] = owner_id;
    }
    if (asks)
    {
        of.moved = of.moved || (of.queue_master != seen.master && !of.clients.empty());
        of.queue_master = seen.master;
        const std::string& member = seen.words[queue_words::ask_member];
        const std::string name{queue_words::without_mark(member)};
        if (queue_words::is_entered(seen.reply))
        {
            const bool receives = !member.starts_with('-');
            // A pause that was announced before is one for this client, too.
            const clock::duration paused = std::max(of.paused_until - seen.at, clock::duration{0});
            of.clients.try_emplace(name, waiting_client{receives, of.free, of.allowed - paused})
                .first->second.receives = receives;
        }
        else
        {
            of.clients.erase(name);
        }
    }
    // A client that frees the key here with a plain release takes another master for the queue master, and wakes none of those
    // that wait.
    const bool frees_plainly = seen.what == "release" && !releases && seen.reply == ":1\r\n";
    of.moved = of.moved || (frees_plainly && of.queue_master == seen.master && !of.clients.empty());
    if (releases && seen.words.size() > queue_words::release_member)
    {
        const clock::duration before = of.allowed;
        of.allowed += handover(of);
        const std::string name{queue_words::without_mark(seen.words[queue_words::release_member])};
        of.clients.erase(name);
        if (seen.words.size() > queue_words::release_pause)
        {
            // Others are allowed to wait for its pause, and so is the client itself.
            const std::chrono::milliseconds pause{
                integer_in(seen.words[queue_words::release_pause]).value_or(0)};
            of.allowed += pause + rounding;
            of.paused_until = std::max(of.paused_until, seen.at + pause + rounding);
            of.clients.emplace(name, waiting_client{true, of.free, before});
        }
    }
}

} // namespace redlock::test
