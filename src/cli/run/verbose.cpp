// SPDX-License-Identifier: BSL-1.0
// Formats each event as a line.
#include "cli/run/verbose.hpp"

#include "cli/common/message.hpp"
#include "cli/run/explain.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace redlock::cli
{

namespace
{

double as_seconds(clock::duration value)
{
    return std::chrono::duration<double>{value}.count();
}

/// Formats one event.
struct line_for
{
    std::string operator()(const master_up& what) const { return fmt::format("{} is up", what.name); }
    std::string operator()(const master_down& what) const
    {
        const std::string detail = what.detail.empty() ? "" : fmt::format(" (\"{}\")", what.detail);
        return fmt::format("{} is down: {}{}", what.name, in_plain_words(what.reason), detail);
    }
    std::string operator()(const master_warning& what) const
    {
        return fmt::format("{}: warning: {}, {}", what.name, to_string(what.what), what.detail);
    }
    std::string operator()(const round_decided& what) const
    {
        const std::string text = what.report.to_string();
        const std::string first_line = text.substr(0, text.find('\n'));
        // The votes matter only if the round failed.
        return what.report.result ? first_line + votes_of(what.report) : first_line;
    }
    std::string operator()(const acquire_queued& what) const
    {
        return fmt::format("waiting at {}, {}", what.queue_master, position_in_words(what.position));
    }
    std::string operator()(const lease_extended& what) const
    {
        return fmt::format("extended, valid for {:.3f} s", as_seconds(what.valid_until - clock::now()));
    }
    std::string operator()(const lease_lost& what) const
    {
        return fmt::format("the lock is lost: {}", in_plain_words(what.reason));
    }
    std::string operator()(const lease_released& what) const
    {
        return what.result ? fmt::format("released: {}", in_plain_words(what.result))
                           : std::string{"released"};
    }
    std::string operator()(const events_dropped& what) const
    {
        return fmt::format("{} events were dropped", what.count);
    }
    std::string operator()(const master_quarantined& what) const
    {
        return fmt::format(
            "{} is in quarantine ({}) for about {:.0f} s", what.name, to_string(what.why),
            std::max(as_seconds(what.ends - clock::now()), 0.0));
    }
    std::string operator()(const master_armed& what) const
    {
        return fmt::format("{} votes again", what.name);
    }
};

} // namespace

verbose_log::verbose_log(bool on) : on_{on}, start_{clock::now()} {}

void verbose_log::line(std::string_view text) const
{
    if (on_)
    {
        say(fmt::format("[{:8.3f} s] {}", as_seconds(clock::now() - start_), text));
    }
}

void verbose_log::take(const redlock::event& what) const
{
    if (on_ && is_new(what))
    {
        line(std::visit(line_for{}, what));
    }
}

/// Returns true if the event differs from the previous one of its kind by more than its times.
bool verbose_log::is_new(const redlock::event& what) const
{
    if (std::holds_alternative<lease_extended>(what))
    {
        return std::exchange(last_extension_, "extended") != "extended";
    }
    const auto* decided = std::get_if<round_decided>(&what);
    if (decided == nullptr)
    {
        return true;
    }
    const report& round = decided->report;
    if (round.operation != operation::acquire && !round.result)
    {
        return false; // Also reported as lease_extended or lease_released.
    }
    std::string how = fmt::format("{}", round.result.value());
    for (const master_report& each : round.masters())
    {
        // Votes aren't compared: which masters vote first differs from round to round.
        how += fmt::format(" {}", each.reason.value());
    }
    std::string& last = round.operation == operation::extend ? last_extension_ : last_round_;
    return std::exchange(last, how) != how;
}

} // namespace redlock::cli
