// SPDX-License-Identifier: BSL-1.0
// A line of text for each event.
#include "cli/verbose.hpp"

#include "cli/message.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <variant>

namespace redlock::cli
{

namespace
{

double in_seconds(clock::duration value)
{
    return std::chrono::duration<double>{value}.count();
}

/// The text of one event.
struct line_of
{
    std::string operator()(const master_up& what) const { return fmt::format("{} is up", what.name); }
    std::string operator()(const master_down& what) const
    {
        const std::string detail = what.detail.empty() ? "" : fmt::format(" (\"{}\")", what.detail);
        return fmt::format("{} is down: {}{}", what.name, what.reason.message(), detail);
    }
    std::string operator()(const master_at_risk& what) const
    {
        return fmt::format("{} is at risk: {}, {}", what.name, to_string(what.what), what.detail);
    }
    std::string operator()(const round_decided& what) const
    {
        const std::string text = what.report.to_string();
        // What each master said matters where it went wrong.
        return what.report.result ? text : text.substr(0, text.find('\n'));
    }
    std::string operator()(const lease_extended& what) const
    {
        return fmt::format("extended, valid for {:.3f} s", in_seconds(what.valid_until - clock::now()));
    }
    std::string operator()(const lease_lost& what) const
    {
        return fmt::format("the lease is lost: {}", what.reason.message());
    }
    std::string operator()(const lease_released& what) const
    {
        return what.result ? fmt::format("released: {}", what.result.message()) : std::string{"released"};
    }
    std::string operator()(const events_dropped& what) const
    {
        return fmt::format("{} lines were left out", what.count);
    }
};

} // namespace

verbose_log::verbose_log(bool on) : on_{on}, start_{clock::now()} {}

void verbose_log::line(std::string_view text) const
{
    if (on_)
    {
        say(fmt::format("[{:8.3f} s] {}", in_seconds(clock::now() - start_), text));
    }
}

redlock::observer verbose_log::observer() const
{
    if (!on_)
    {
        return {};
    }
    return {.on_event = [this](const event& what) { line(std::visit(line_of{}, what)); }};
}

} // namespace redlock::cli
