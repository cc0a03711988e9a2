// SPDX-License-Identifier: BSL-1.0
// Compares reports with the wire.
#include "report_check.hpp"

#include "guarded_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace redlock::test
{

namespace
{

/// The meaning of an error reply, by its first words. The library has its own table: src/core/server_error.cpp.
master_errc reason_of(std::string_view error)
{
    constexpr std::array<std::pair<std::string_view, master_errc>, 18> reasons{{
        {"NOVOTE incarnation", master_errc::incarnation_changed},
        {"NOVOTE clock", master_errc::clock_ahead},
        {"NOVOTE group", master_errc::other_group},
        {"LOADING ", master_errc::loading},
        {"BUSY ", master_errc::busy},
        {"READONLY ", master_errc::read_only},
        {"MASTERDOWN ", master_errc::read_only},
        {"NOREPLICAS ", master_errc::no_replicas},
        {"MISCONF ", master_errc::misconfigured},
        {"OOM ", master_errc::out_of_memory},
        {"NOAUTH ", master_errc::authentication_failed},
        {"WRONGPASS ", master_errc::authentication_failed},
        {"NOPERM ", master_errc::no_permission},
        {"ERR The user executing the script can't ", master_errc::no_permission},
        {"ERR ACL failure in script", master_errc::no_permission},
        {"MOVED ", master_errc::cluster_node},
        {"CLUSTERDOWN ", master_errc::cluster_node},
        {"ERR max number of clients", master_errc::too_many_clients},
    }};
    const auto found = std::find_if(
        reasons.begin(), reasons.end(), [&](const auto& each) { return error.starts_with(each.first); });
    return found == reasons.end() ? master_errc::command_failed : found->second;
}

bool is_error(std::string_view reply)
{
    return reply.starts_with('-');
}

/// The text of an error reply, without its sign and its end.
std::string_view text_of(std::string_view reply)
{
    return reply.substr(1, reply.find('\r') - 1);
}

/// The vote of a reply that is no error.
vote vote_of(operation what, std::string_view reply)
{
    switch (what)
    {
    case operation::acquire: // Of a slot request, a positive number is a wait.
        return reply == "+OK\r\n" || reply.starts_with(':') ? vote::granted : vote::denied;
    case operation::extend:
    case operation::release: // 2 and 3 say that other clients wait.
        return reply == ":1\r\n" || reply == ":3\r\n" ? vote::granted : vote::denied;
    }
    return vote::failed;
}

std::optional<operation> operation_of(const std::string& what, const command& words)
{
    if (what == "SET" && words.size() > 2)
    {
        return operation::acquire;
    }
    if (words.size() <= 4)
    {
        return std::nullopt;
    }
    return what == "ask"       ? std::optional{operation::acquire}
           : what == "extend"  ? std::optional{operation::extend}
           : what == "release" ? std::optional{operation::release}
                               : std::nullopt;
}

} // namespace

bool report_check::shows(const short_text& detail, std::string_view reply) const
{
    if (reply.starts_with(no_vote))
    {
        return detail.view().empty();
    }
    return short_text{text_of(reply)}.view() == detail.view() ||
           (!password_.empty() && reply.find(password_) != std::string_view::npos);
}

bool report_check::was_said(int process, std::size_t master, std::string_view words) const
{
    return words.empty() || said_.contains({process, master, std::string{words}}) ||
           (words.starts_with("ERR") && crowded_.contains(master));
}

bool report_check::shows(const master_inspection& seen, std::string_view reply) const
{
    const std::string_view start = "*2\r\n"; // The value and its time to live.
    if (!reply.starts_with(start))
    {
        return false;
    }
    const std::string_view value = reply.substr(start.size());
    const bool is_null = value.starts_with('_') || value.starts_with("$-1\r\n");
    const std::string_view owner_id = seen.owner_id.view();
    const bool has_value = is_error(value)
                               ? owner_id.empty() && shows(seen.detail, value)
                               : seen.detail.view().empty() &&
                                     (owner_id.empty() ? is_null || value.starts_with("$0\r\n")
                                                       : value.find(fmt::format("\r\n{}\r\n", owner_id)) !=
                                                             std::string_view::npos);
    const bool has_ttl = seen.expires_in
                             ? reply.ends_with(fmt::format("\r\n:{}\r\n", seen.expires_in->count()))
                             : is_null || reply.substr(reply.rfind(':')).starts_with(":-");
    return has_value && has_ttl && seen.has_key == !is_null;
}

bool report_check::follows(operation what, const master_report& vote, const std::string& reply) const
{
    if (vote.vote == vote::granted || vote.vote == vote::denied)
    {
        // To a script that compares first, a key of another type is one of another owner.
        const bool is_denial = what != operation::acquire && reply.starts_with("-WRONGTYPE ");
        return is_error(reply) ? is_denial && vote.vote == vote::denied : vote_of(what, reply) == vote.vote;
    }
    if (reply.starts_with(no_vote) && text_of(reply).ends_with(" key"))
    {
        return vote.vote == vote::failed && !vote.reason && shows(vote.detail, reply);
    }
    return vote.vote == vote::failed && is_error(reply) && reason_of(text_of(reply)) == vote.reason &&
           shows(vote.detail, reply);
}

std::optional<std::string> report_check::record(
    std::size_t master, int process, clock::time_point at, const std::string& what, const command& words,
    const std::string& reply, bool distorted)
{
    if (const auto plain = in_plain_mode(what, words, reply))
    {
        auto wrong = record(master, process, at, plain->what, plain->words, plain->reply, distorted);
        if (plain->counter)
        {
            const std::string& owner_id = plain->words[plain->what == "SET" ? 2 : 5];
            history& of_owner = histories_[owner_id];
            of_owner.answers[operation::acquire][master].back().has_counter = true;
            of_owner.unused[operation::acquire][master].back().has_counter = true;
        }
        return wrong;
    }
    if (const auto raise = read_raise(what, words))
    {
        if (const auto failed = failed_raise(reply))
        {
            histories_[raise->owner_id].add(operation::acquire, master, {at, *failed});
        }
    }
    if (distorted)
    {
        distorted_.emplace(process, master);
    }
    if (is_error(reply))
    {
        const std::string_view text = text_of(reply);
        errors_.emplace(process, master, static_cast<int>(reason_of(text)));
        said_.emplace(process, master, short_text{text}.view());
        // Of a log-in that was refused only this is shown: the rest may be the password.
        said_.emplace(process, master, text.substr(0, text.find(' ')));
    }
    // A server that may not grant says so in a reply that is no error.
    for (const char* const role : {"replica", "slave"})
    {
        if ((what == "HELLO" || what == "INFO") && reply.find(role) != std::string::npos)
        {
            said_.emplace(process, master, std::string{"its role is "} + role);
        }
    }
    const auto op = operation_of(what, words);
    if (!op)
    {
        if (what == "EVAL" && words.size() == 4)
        {
            inspections_[{process, words[3]}][master].push_back({at, reply});
            if (reply.starts_with("*2\r\n-")) // A command in the script was refused.
            {
                const std::string_view refusal = std::string_view{reply}.substr(reply.find('-'));
                said_.emplace(process, master, short_text{text_of(refusal)}.view());
            }
        }
        return std::nullopt;
    }
    const bool sets = what == "SET";
    const std::string& owner_id = words[sets ? 2 : what == "ask" ? 5 : 4];
    history& of_owner = histories_[owner_id];
    of_owner.add(*op, master, {at, reply});
    if (*op != operation::acquire)
    {
        return std::nullopt;
    }
    sent_[{process, words[sets ? 1 : 3]}].emplace_back(at, owner_id);
    // A master that denied an extension is sent the key again.
    const bool contradicts = is_checked(process, master) && of_owner.reported_as_unsent.contains(master) &&
                             !of_owner.answers.contains(operation::extend);
    return contradicts
               ? std::optional{fmt::format(
                     "master {} runs a {} of {}, which was reported as unsent", master, what, owner_id)}
               : std::nullopt;
}

/// Returns what is wrong with the vote of a master; null if nothing is.
const char* report_check::wrong_with(
    int process, std::size_t master, std::span<const exchange> answers, const report& told) const
{
    const master_report& vote = told.masters()[master];
    const bool is_plain = !vote.reason && vote.detail.view().empty();
    const bool is_answered = std::any_of(
        answers.begin(), answers.end(),
        [&](const exchange& each) { return follows(told.operation, vote, each.reply); });
    const bool is_granted =
        std::any_of(answers.begin(), answers.end(), [](const exchange& each) { return each.has_counter; });
    switch (vote.vote)
    {
    case vote::pending:
        return is_plain && vote.elapsed.count() == 0 ? nullptr
                                                     : "a pending vote has no reason and no latency";
    case vote::granted:
    case vote::denied:
        return is_answered && is_plain && vote.elapsed.count() > 0 ? nullptr
                                                                   : "it isn't the answer of the master";
    case vote::failed:
    {
        // The end of a connection fails its commands. Its reason may be the error of another command.
        const bool of_connection =
            vote.detail.view().empty() &&
            (vote.reason == master_errc::connection_lost || vote.reason == master_errc::unresponsive ||
             vote.reason.category() != master_category() ||
             errors_.contains({process, master, vote.reason.value()}));
        // A raise that isn't sent has no answer.
        const bool of_unsent_raise = is_granted && vote.detail.view().empty() &&
                                     (vote.reason == master_errc::incarnation_changed ||
                                      vote.reason == master_errc::write_queue_full ||
                                      vote.reason == master_errc::too_many_outstanding_keys);
        return is_answered || of_connection || of_unsent_raise ? nullptr
                                                               : "it isn't the answer of the master";
    }
    case vote::timed_out:
        // Or the master has granted, and its raise timed out.
        return vote.reason == master_errc::timed_out && vote.detail.view().empty() &&
                       (vote.elapsed >= told.node_timeout ||
                        (is_granted && told.operation == operation::acquire))
                   ? nullptr
                   : "a vote times out after the node timeout, and has no other reason";
    case vote::unsent:
        return vote.reason && (told.operation != operation::acquire || answers.empty())
                   ? nullptr
                   : "the command was sent, or nothing explains that it wasn't";
    }
    return "it is no vote";
}

std::optional<std::string> report_check::compare(
    int process, std::size_t master, std::span<const exchange> answers, const report& told) const
{
    const char* const wrong =
        !is_checked(process, master) ? nullptr : wrong_with(process, master, answers, told);
    if (wrong == nullptr)
    {
        return std::nullopt;
    }
    const master_report& vote = told.masters()[master];
    std::string all;
    for (const exchange& each : answers)
    {
        all += ' ' + each.reply.substr(0, each.reply.find('\r'));
    }
    return fmt::format(
        "{} by client {}, master {}: vote {}, reason '{}', detail '{}', after {} ns of {} ms: {}; its "
        "answers:{}",
        to_string(told.operation), process, master, to_string(vote.vote), vote.reason.message(),
        vote.detail.view(), vote.elapsed.count(), told.node_timeout.count(), wrong, all);
}

std::span<const report_check::exchange>
report_check::answers_since(clock::time_point since, const exchanges& answers, std::size_t master)
{
    const auto found = answers.find(master);
    if (found == answers.end())
    {
        return {};
    }
    const auto first = std::find_if(
        found->second.begin(), found->second.end(), [&](const exchange& each) { return each.at >= since; });
    return {first, found->second.end()};
}

std::optional<std::string> report_check::decided(int process, const round_decided& round)
{
    const report& told = round.report;
    history& of_owner = histories_[round.owner_id];
    exchanges& unused = of_owner.unused[told.operation];
    std::optional<std::string> found;
    for (std::size_t master = 0; master < told.masters().size() && !found; ++master)
    {
        const master_report& vote = told.masters()[master];
        std::vector<exchange>& all = unused[master];
        // A slow observer is notified after the key was sent again, because the master had denied an extension.
        const bool rejoined = vote.vote == vote::unsent && of_owner.answers.contains(operation::extend);
        found = rejoined ? std::nullopt : compare(process, master, all, told);
        // In any order: the extensions of a caller and those in the background overlap.
        const auto answer = std::find_if(
            all.begin(), all.end(),
            [&](const exchange& each) { return follows(told.operation, vote, each.reply); });
        if (answer != all.end())
        {
            all.erase(answer);
        }
        if (vote.vote == vote::timed_out && told.elapsed < told.node_timeout)
        {
            found = fmt::format(
                "{} by client {}: master {} timed out, {} ns after the round began",
                to_string(told.operation), process, master, told.elapsed.count());
        }
        if (told.operation == operation::acquire && vote.vote == vote::unsent)
        {
            of_owner.reported_as_unsent.insert(master);
        }
    }
    return found;
}

std::optional<std::string> report_check::compare(
    int process, clock::time_point since, const exchanges& answers, const report& told) const
{
    std::optional<std::string> found;
    for (std::size_t master = 0; master < told.masters().size() && !found; ++master)
    {
        found = compare(process, master, answers_since(since, answers, master), told);
    }
    return found;
}

std::optional<std::string> report_check::reported(
    int process, clock::time_point since, std::string_view owner_id, const report& told) const
{
    const auto of_owner = histories_.find(std::string{owner_id});
    if (of_owner == histories_.end() || !of_owner->second.answers.contains(told.operation))
    {
        return compare(process, since, {}, told);
    }
    return compare(process, since, of_owner->second.answers.at(told.operation), told);
}

std::optional<std::string>
report_check::refused(int process, clock::time_point since, const std::string& key, const report& told) const
{
    auto found = compare(process, since, {}, told); // No master may have received anything.
    const auto sent = sent_.find({process, key});
    if (!found || sent == sent_.end())
    {
        return found;
    }
    for (const auto& [at, owner_id] : sent->second)
    {
        if (at < since)
        {
            continue;
        }
        found = reported(process, since, owner_id, told);
        if (!found)
        {
            break;
        }
    }
    return found;
}

std::optional<std::string> report_check::inspected(
    int process, clock::time_point since, const std::string& key, const inspection& seen) const
{
    const auto about = inspections_.find({process, key});
    for (std::size_t master = 0; master < seen.masters().size(); ++master)
    {
        const master_inspection& one = seen.masters()[master];
        const auto is_said_by = [&](const exchange& each) { return shows(one, each.reply); };
        const auto all = about == inspections_.end() ? std::span<const exchange>{}
                                                     : answers_since(since, about->second, master);
        // A failure may be that of the connection, which is no answer to the inspection.
        const bool is_explained = one.reason ? was_said(process, master, one.detail.view())
                                             : std::any_of(all.begin(), all.end(), is_said_by);
        if (is_checked(process, master) && !is_explained)
        {
            return fmt::format(
                "inspection by client {}: master {} never answered with owner id '{}', reason '{}', detail "
                "'{}'",
                process, master, one.owner_id.view(), one.reason.message(), one.detail.view());
        }
    }
    return std::nullopt;
}

std::optional<std::string> report_check::told(int process, const event& what) const
{
    const auto* const down = std::get_if<master_down>(&what);
    if (down == nullptr || !is_checked(process, down->index) || was_said(process, down->index, down->detail))
    {
        return std::nullopt;
    }
    return fmt::format(
        "client {} is notified that master {} is down, which has never said '{}'", process, down->index,
        down->detail);
}

} // namespace redlock::test
