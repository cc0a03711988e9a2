// SPDX-License-Identifier: BSL-1.0
// Rules for the wait queues.
#include "queue_rules.hpp"

#include "queue_words.hpp"
#include "support/fake_replies.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

// Clients are dropped a second after their last question, or after the grace, which is 50 ms at least. Clocks of masters
// may run faster by 30 %.
constexpr clock::duration counts_as_alive = 700ms;
constexpr clock::duration least_grace = 35ms;
constexpr clock::duration longest_grace = 1s + 300ms;
/// A client without messages polls, but not at this rate before it knows that it is the first one.
constexpr clock::duration polled_just_now = 20ms;

/// A client that has moved to another queue master is in both queues until the former one has its leave, which is sent with
/// the question. The slowest disk takes 20 ms for each write.
constexpr clock::duration leave_arrives = 50ms;

/// The client that a message is for.
std::string receiver_of(const publication& sent)
{
    constexpr std::string_view prefix = "redlock:";
    return sent.channel.substr(prefix.size()) + ":" + sent.message.substr(1);
}

std::int64_t arrival_of(const executed_command& seen, std::size_t waited)
{
    return seen.its_time - 1000 * integer_in(seen.words.at(waited)).value_or(0);
}

} // namespace

std::optional<violation> queue_rules::look(const executed_command& seen)
{
    if (seen.what == "SET" && seen.words.size() > 2)
    {
        round_seen& of = rounds_.try_emplace(seen.words[2], round_seen{seen.at}).first->second;
        if (seen.reply == "+OK\r\n")
        {
            count_grant(seen, of);
        }
        return std::nullopt;
    }
    if (seen.what == "SUBSCRIBE" || seen.what == "INFO")
    {
        handshakes_[{seen.origin, seen.master}] = seen.at;
        return std::nullopt;
    }
    if (seen.reply.starts_with("-NOSCRIPT "))
    {
        return std::nullopt; // Sent again in full.
    }
    if (seen.what == "ask" && seen.words.size() >= queue_words::ask_count)
    {
        return look_at_question(seen);
    }
    const bool leaves = seen.what == "release" && seen.words.size() > queue_words::release_owner_id + 1;
    return leaves && seen.counts_queues ? look_at_release(seen) : std::nullopt;
}

void queue_rules::count_grant(const executed_command& seen, round_seen& of) const
{
    if (++of.grants == setting_.quorum)
    {
        of.quorum_at = seen.at;
    }
}

std::optional<violation> queue_rules::look_at_question(const executed_command& seen)
{
    queue& here = queue_at(seen);
    const std::string& owner_id = seen.words[queue_words::ask_owner_id];
    const std::string& member = seen.words[queue_words::ask_member];
    const std::string name{queue_words::without_mark(member)};
    const auto known_master =
        asked_.try_emplace(seen.words[queue_words::key], asked_master{seen.master}).first;
    known_master->second.moved = known_master->second.moved || known_master->second.index != seen.master;

    home& its =
        homes_.try_emplace({seen.words[queue_words::key], name}, home{seen.master, seen.at}).first->second;
    if (its.master != seen.master)
    {
        its = {seen.master, seen.at};
    }

    round_seen& of = rounds_.try_emplace(owner_id, round_seen{seen.at}).first->second;
    if (const auto broken = look_at_messages(seen, here, of))
    {
        return broken;
    }
    waiting_client* known = find(here, name);
    const position now{seen.at, arrival_of(seen, queue_words::ask_waited)};
    if (known != nullptr && !still_waits(*known, seen.at))
    {
        known->last = {seen.at, std::max(known->last.arrival, now.arrival)};
        known->first.arrival = std::min(known->first.arrival, now.arrival);
    }
    question asked{
        seen.master, name, known != nullptr ? known->first : now, known != nullptr,
        known != nullptr && known->barges};
    if (queue_words::is_entered(seen.reply))
    {
        if (known == nullptr)
        {
            here.clients.push_back({name, now, now, seen.at});
            known = &here.clients.back();
        }
        known->asked = seen.at;
        known->woken.reset();
        known->barges = false;
        known->receives = !member.starts_with('-');
        known->origin = seen.origin;
    }
    else if (seen.reply.starts_with(':'))
    {
        remove(here, name);
    }
    else if (known != nullptr && seen.reply.starts_with('-'))
    {
        known->woken = clock::time_point{}; // It may have been dropped.
    }
    if (seen.reply.starts_with("*3\r\n"))
    {
        asked.refused = seen.at;
    }
    std::optional<violation> broken;
    if (seen.reply.starts_with(':') && here.granted != owner_id)
    {
        here.granted = owner_id;
        asked.granted = true;
        count_grant(seen, of);
        broken = check_order(seen, here, asked);
    }
    of.asked = std::move(asked);
    return broken;
}

std::optional<violation> queue_rules::look_at_release(const executed_command& seen)
{
    queue& here = queue_at(seen);
    const std::string& owner_id = seen.words[queue_words::release_owner_id];
    round_seen& of = rounds_.try_emplace(owner_id, round_seen{seen.at}).first->second;
    const bool names = seen.words.size() > queue_words::release_member;
    const std::string name{names ? queue_words::without_mark(seen.words[queue_words::release_member]) : ""};
    const bool lost = names && seen.words[queue_words::release_mode] == "lost";
    waiting_client* const found = find(here, name);
    const std::optional<waiting_client> known = found != nullptr ? std::optional{*found} : std::nullopt;
    if (found != nullptr && seen.reply.starts_with('-'))
    {
        found->woken = clock::time_point{}; // It may have been dropped.
    }
    else
    {
        remove(here, name);
    }
    if (const auto broken = look_at_messages(seen, here, of))
    {
        return broken;
    }
    if (lost)
    {
        losses_[{seen.origin, seen.words[queue_words::key]}] = seen.at;
    }
    if (lost && seen.reply.starts_with(':') && seen.words.size() > queue_words::release_waited)
    {
        // It isn't expected to ask before its pause has ended. A newcomer whose first SETs were granted here, but not by a
        // quorum, has barged, and is served ahead of the others until it is refused.
        const position now{seen.at, arrival_of(seen, queue_words::release_waited)};
        position first =
            known ? position{known->first.entered, std::min(known->first.arrival, now.arrival)} : now;
        const bool asked = of.asked && of.asked->name == name && of.asked->master == seen.master;
        if (asked)
        {
            first = {of.asked->first.entered, std::min(of.asked->first.arrival, now.arrival)};
        }
        here.clients.push_back(
            {name, first, known ? known->last : now, seen.at, seen.at,
             !seen.words[queue_words::release_member].starts_with('-'), seen.origin,
             !asked || of.asked->barges});
    }
    return std::nullopt;
}

/// If nobody receives a message, its client is dropped, and may be followed by others of its manager, so that the next one gets
/// the message.
std::optional<violation>
queue_rules::look_at_messages(const executed_command& seen, queue& at, round_seen& of)
{
    const bool releases = seen.what == "release";
    std::size_t woken = 0;
    for (const publication& each : seen.published)
    {
        const std::string name = receiver_of(each);
        if (each.receivers == 0)
        {
            remove(at, name);
            const std::string manager = name.substr(0, name.find(':') + 1);
            for (waiting_client& one : at.clients)
            {
                if (one.receives && one.name.starts_with(manager))
                {
                    one.woken = clock::time_point{}; // It may have been dropped.
                }
            }
            continue;
        }
        ++woken;
        if (waiting_client* const known = find(at, name))
        {
            known->woken = known->woken.value_or(seen.at);
        }
        if (!releases)
        {
            continue;
        }
        const auto its = homes_.find({seen.words[queue_words::key], name});
        const bool has_just_moved = its != homes_.end() && seen.at - its->second.since < leave_arrives;
        const auto before = std::find_if(
            of.woken.begin(), of.woken.end(),
            [&](const auto& one)
            { return one.first == seen.master || (one.second == name && !has_just_moved); });
        // A release that was held in the network may run after another one, by which the client has replaced it.
        if (calm_ && before != of.woken.end())
        {
            return violation{
                "one wake per release",
                fmt::format(
                    "the release of {} at master {} wakes {}, and has woken {} at master {}",
                    seen.words[queue_words::release_owner_id], seen.master, name, before->second,
                    before->first)};
        }
        of.woken.emplace_back(seen.master, name);
    }
    const bool lost = releases && seen.words.size() > queue_words::release_member &&
                      seen.words[queue_words::release_mode] == "lost";
    if (woken > (lost ? 0U : 1U))
    {
        return violation{
            "one wake per release", fmt::format(
                                        "{} at master {} wakes {} clients",
                                        lost ? "a lost round" : "a " + seen.what, seen.master, woken)};
    }
    return std::nullopt;
}

std::optional<violation>
queue_rules::check_order(const executed_command& seen, const queue& at, const question& of)
{
    if (of.barges || (at.lost && seen.at - *at.lost < longest_grace))
    {
        return std::nullopt; // It may have been woken before the loss.
    }
    for (const waiting_client& each : at.clients)
    {
        if (each.name == of.name || !still_waits(each, seen.at))
        {
            continue;
        }
        ++comparisons_;
        if (each.last.precedes(of.first))
        {
            return violation{
                "fifo", fmt::format(
                            "master {} grants {}, which has waited for {} us, while {} has waited for {} us",
                            seen.master, of.name, seen.its_time - of.first.arrival, each.name,
                            seen.its_time - each.last.arrival)};
        }
    }
    return std::nullopt;
}

std::optional<violation>
queue_rules::won(int origin, const std::string& key, const std::string& owner_id, clock::time_point at) const
{
    const auto asked = asked_.find(key);
    const auto found = rounds_.find(owner_id);
    if (asked == asked_.end() || found == rounds_.end() || asked->second.moved || !is_calm(origin))
    {
        return std::nullopt;
    }
    const auto here = queues_.find({key, asked->second.index});
    const round_seen& round = found->second;
    const std::optional<question>& its = round.asked;
    if (here == queues_.end() || (its && its->granted) || !round.quorum_at || here->second.lost)
    {
        return std::nullopt; // The rules at the master apply.
    }
    // In the default order, a client that has waited, and asks in its round, began it because it was served first; newcomers
    // may be faster. In strict order, only a client is faster to which the queue master's answer comes later than it waits
    // for it: 0.5 ms after the decision. One that has asked no question began its round without regard to the queue.
    constexpr clock::duration least_patience = 500us;
    const auto comes_in_time = [&](clock::time_point answered)
    { return answered + setting_.jitter <= *round.quorum_at + least_patience; };
    const bool refused_in_time = its && its->refused && comes_in_time(*its->refused);
    // A question that has not been executed may still be on its way, as long as the jitter allows.
    const clock::time_point latest_question = round.began + setting_.jitter;
    const bool could_be_refused = !its && latest_question < at && comes_in_time(latest_question) &&
                                  could_ask(origin, key, asked->second.index, round.began);
    const bool fair = !setting_.strict && its && its->waited && !its->barges;
    const bool strict = setting_.strict && setting_.regular && (refused_in_time || could_be_refused);
    for (const waiting_client& each : here->second.clients)
    {
        if (!(fair || strict) || (its && each.name == its->name) || !still_waits(each, at) ||
            !is_calm(each.origin))
        {
            continue;
        }
        ++comparisons_;
        if (its ? each.last.precedes(its->first) : each.last.entered < round.began)
        {
            return violation{
                fair ? "fifo" : "strict", fmt::format(
                                              "client {} acquires {} with {}, while {} waits at master {}",
                                              origin, key, owner_id, each.name, asked->second.index)};
        }
    }
    return std::nullopt;
}

/// Returns whether a client in a calm network knew its queue master when it began a round, and had no reason to pass it over:
/// none of its rounds was lost although the queue master had granted it.
bool queue_rules::could_ask(
    int origin, const std::string& key, std::size_t master, clock::time_point at) const
{
    constexpr clock::duration settles = 10ms;
    constexpr clock::duration remembers = 1s + 300ms;
    const auto connected = handshakes_.find({origin, master});
    const auto lost = losses_.find({origin, key});
    return connected != handshakes_.end() && at - connected->second > settles &&
           (lost == losses_.end() || at - lost->second > remembers);
}

/// Returns whether the master counts it as alive: it asks regularly, and has answered its message.
bool queue_rules::still_waits(const waiting_client& one, clock::time_point at)
{
    return at - one.asked < (one.receives ? counts_as_alive : polled_just_now) &&
           (!one.woken || at - *one.woken < least_grace);
}

queue_rules::queue& queue_rules::queue_at(const executed_command& seen)
{
    const std::pair key{seen.words[queue_words::key], seen.master};
    // What the master lost before wasn't in a queue that is new.
    queue& here = queues_.try_emplace(key, queue{.losses = seen.losses}).first->second;
    const bool understood =
        seen.reply.starts_with(':') || seen.reply.starts_with("*3\r\n") || seen.reply.starts_with('-');
    if (here.losses != seen.losses || !understood)
    {
        here = queue{.losses = seen.losses, .lost = seen.at};
    }
    return here;
}

void queue_rules::forget(std::size_t master, clock::time_point at)
{
    for (auto& [key, here] : queues_)
    {
        if (key.second == master)
        {
            here.clients.clear();
            here.lost = at;
        }
    }
}

queue_rules::waiting_client* queue_rules::find(queue& in, std::string_view name)
{
    const auto found = std::find_if(
        in.clients.begin(), in.clients.end(), [&](const waiting_client& each) { return each.name == name; });
    return found != in.clients.end() ? &*found : nullptr;
}

void queue_rules::remove(queue& from, std::string_view name)
{
    std::erase_if(from.clients, [&](const waiting_client& each) { return each.name == name; });
}

} // namespace redlock::test
