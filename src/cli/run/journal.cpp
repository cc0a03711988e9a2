// SPDX-License-Identifier: BSL-1.0
// Records the events of a manager.
#include "cli/run/journal.hpp"

#include "cli/common/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace redlock::cli
{

journal::journal(const verbose_log& log, mailbox& to, std::size_t masters)
    : log_{log}, to_{to}, refused_(masters), warned_(masters)
{
}

redlock::observer journal::observer()
{
    return {.on_event = [this](const redlock::event& what) { take(what); }};
}

bool journal::is_refused() const noexcept
{
    const auto refused = std::count(refused_.begin(), refused_.end(), true);
    return refused_.size() - static_cast<std::size_t>(refused) < quorum_of(refused_.size());
}

void journal::take(const redlock::event& what)
{
    log_.take(what);
    if (const auto* down = std::get_if<master_down>(&what))
    {
        on_down(*down);
    }
    else if (const auto* up = std::get_if<master_up>(&what))
    {
        refused_.at(up->index) = false;
    }
    else if (const auto* decided = std::get_if<round_decided>(&what))
    {
        if (decided->report.operation == operation::acquire)
        {
            last_round_ = decided->report;
        }
        else if (decided->report.operation == operation::extend)
        {
            failed_extension_ = decided->report.result ? std::optional{decided->report} : std::nullopt;
        }
    }
    else if (const auto* queued = std::get_if<acquire_queued>(&what))
    {
        position_ = queued->position;
        to_.push({.kind = event_kind::queued});
    }
    else if (std::holds_alternative<lease_extended>(what))
    {
        failed_extension_.reset();
    }
}

void journal::on_down(const master_down& what)
{
    refused_.at(what.index) = is_refused_by_system(what.reason);
    if (refused_.at(what.index))
    {
        refusal_ = what;
        if (is_refused())
        {
            to_.push({.kind = event_kind::refused});
        }
    }
    if (what.reason == master_errc::same_server && !warned_.at(what.index))
    {
        warned_.at(what.index) = true;
        say(fmt::format(
            "warning: {}: {} ({}): give each server once", what.name, in_plain_words(what.reason),
            what.detail));
    }
}

} // namespace redlock::cli
