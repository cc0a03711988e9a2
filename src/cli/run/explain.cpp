// SPDX-License-Identifier: BSL-1.0
// Describes votes and inspections.
#include "cli/run/explain.hpp"

#include "cli/common/inspected_key.hpp"
#include "cli/common/message.hpp"

#include <boost/asio/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace redlock::cli
{

namespace
{

std::string with_detail(const error_code& reason, const short_text& detail)
{
    const std::string text = in_plain_words(reason);
    return detail.view().empty() ? text : fmt::format("{} (\"{}\")", text, detail.view());
}

bool is_decided(const report& round) noexcept
{
    const std::size_t granted = round.count(vote::granted);
    return granted >= round.quorum() || granted + round.count(vote::pending) < round.quorum();
}

std::string vote_of(const report& round, const master_report& one)
{
    const operation what = round.operation;
    if (one.reason == master_errc::timed_out)
    {
        return fmt::format("no answer within {} ms (--ttl / 20, at most 500 ms)", round.node_timeout.count());
    }
    if (one.reason)
    {
        return with_detail(one.reason, one.detail);
    }
    switch (one.vote)
    {
    case vote::granted:
        return what == operation::extend ? "extended" : "granted";
    case vote::denied:
        return what == operation::extend ? "the key is missing or has another owner"
                                         : "held by another client";
    case vote::pending:
        if (round.result == boost::asio::error::operation_aborted)
        {
            return "no answer before the attempt ended";
        }
        return is_decided(round) ? "not waited for: the others decided the round"
                                 : "no answer before the round ended";
    default:
        return std::string{to_string(one.vote)};
    }
}

std::string holder_at(const master_inspection& one, std::string_view ours)
{
    if (one.reason)
    {
        return with_detail(one.reason, one.detail);
    }
    if (!one.has_key)
    {
        return ours.empty() ? "free" : "the key is gone";
    }
    const bool is_ours = !ours.empty() && one.owner_id.view() == ours;
    const std::string who = is_ours ? "the key is ours" : key_in_words(one);
    return one.expires_in ? fmt::format("{}, for another {}", who, time_left(*one.expires_in)) : who;
}

/// Numbers of masters: with the key of another owner, without a key, without an answer.
struct tally
{
    std::size_t others = 0;
    std::size_t gone = 0;
    std::size_t silent = 0;
};

tally count(const inspection& found, std::string_view ours)
{
    tally all;
    for (const master_inspection& one : found.masters())
    {
        all.silent += one.reason ? 1U : 0U;
        all.gone += !one.reason && !one.has_key ? 1U : 0U;
        all.others += !one.reason && one.has_key && one.owner_id.view() != ours ? 1U : 0U;
    }
    return all;
}

std::string summary_of(const inspection& found, std::string_view ours)
{
    const tally all = count(found, ours);
    const std::size_t masters = found.masters().size();
    if (all.others + all.gone > masters - found.quorum())
    {
        return fmt::format(
            "of {} masters {} have the key of another owner, and {} have no key", masters, all.others,
            all.gone);
    }
    if (masters - all.silent < found.quorum())
    {
        return fmt::format(
            "only {} of {} masters answer now (quorum {})", masters - all.silent, masters, found.quorum());
    }
    return fmt::format("a quorum of {} masters answers now", found.quorum());
}

} // namespace

std::string votes_of(const report& round)
{
    std::string text;
    for (std::size_t index = 0; index < round.masters().size(); ++index)
    {
        text += fmt::format("\n  {}: {}", round.name(index), vote_of(round, round.masters()[index]));
    }
    return text;
}

std::string holders_of(const inspection& found, std::string_view ours)
{
    std::string text;
    for (std::size_t index = 0; index < found.masters().size(); ++index)
    {
        text += fmt::format("\n  {}: {}", found.name(index), holder_at(found.masters()[index], ours));
    }
    return text;
}

std::string position_in_words(const queue_position& position)
{
    return position.ahead == 0
               ? std::string{"first in the queue"}
               : fmt::format(
                     "{} client{} ahead in the queue", position.ahead, position.ahead == 1 ? "" : "s");
}

std::string holder_of(const inspection& found)
{
    const std::size_t masters = found.masters().size();
    if (found.answered() < found.quorum())
    {
        return fmt::format(
            "only {} of {} masters answered (quorum {}):{}", found.answered(), masters, found.quorum(),
            holders_of(found));
    }
    const std::string_view owner = found.holder();
    if (owner.empty())
    {
        return fmt::format(
            "no owner has it on a quorum of the masters{}",
            found.taken() == 0 ? std::string{} : ":" + holders_of(found));
    }
    std::chrono::milliseconds longest{0};
    bool ends = true;
    for (const master_inspection& one : found.masters())
    {
        if (!one.reason && one.owner_id.view() == owner)
        {
            ends = ends && one.expires_in.has_value();
            longest = std::max(longest, one.expires_in.value_or(longest));
        }
    }
    return fmt::format(
        "held by {} on {} of {} masters, {}", owner, found.count(owner), masters,
        ends ? "for another " + time_left(longest) + " unless it is extended"
             : std::string{"without expiry"});
}

std::string
why_lost(const std::optional<report>& failed_extension, const inspection& found, std::string_view ours)
{
    std::string text;
    if (failed_extension)
    {
        text = "the last extension failed:" + votes_of(*failed_extension) + "\n  ";
    }
    return text + (found.masters().empty()
                       ? std::string{"the masters didn't answer an inspection of the key in time"}
                       : summary_of(found, ours) + ":" + holders_of(found, ours));
}

} // namespace redlock::cli
