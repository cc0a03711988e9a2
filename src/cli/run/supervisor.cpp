// SPDX-License-Identifier: BSL-1.0
// Handles the events that concern the child.
#include "cli/run/supervisor.hpp"

#include "cli/common/exit_code.hpp"
#include "cli/common/message.hpp"
#include "cli/common/times.hpp"
#include "cli/run/descendants.hpp"
#include "cli/run/signals.hpp"
#include "cli/run/stop_watch.hpp"

#include <redlock/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace redlock::cli
{

namespace
{

double in_seconds(clock::duration value)
{
    return std::chrono::duration<double>{value}.count();
}

/// Formats an error of exec as a shell does.
std::string exec_complaint(const std::string& program, int error)
{
    const bool looked_up = program.find('/') == std::string::npos;
    const std::string why =
        error == ENOENT && looked_up ? "command not found" : std::generic_category().message(error);
    return fmt::format("{}: {}", short_text{program}.view(), why);
}

/// Describes a loss in terms of the command's options.
std::string_view what_is_lost(const error_code& why, bool disowned)
{
    if (why == errc::hold_limit_reached)
    {
        return "--max-hold was reached";
    }
    return disowned ? "the lock is lost, since too many masters no longer have its key"
                    : "the lock is lost, since no quorum of the masters extended it in time";
}

} // namespace

supervisor::supervisor(
    const run_arguments& asked, const lease& held, const terminal& shared, const mailbox& events,
    alarm& kill_alarm, const verbose_log& log)
    : asked_{asked}, held_{held}, events_{events}, kill_alarm_{kill_alarm}, log_{log}, terminal_{shared}
{
}

void supervisor::start()
{
    child_plan plan;
    plan.command = asked_.command;
    plan.environment = {
        "REDLOCK_RESOURCE=" + asked_.common.resource, "REDLOCK_OWNER_ID=" + std::string{held_.owner_id()}};
    if (const std::optional<std::uint64_t> token = held_.fencing_token())
    {
        plan.environment.push_back(fmt::format("{}={}", token_variable, *token));
    }
    else
    {
        plan.without.emplace_back(token_variable); // Of another lock that redlock was run under.
    }
    if (!asked_.inherit_masters)
    {
        plan.without.emplace_back(masters_variable);
    }
    // At a terminal the child stays in redlock's group, as a script expects: it can read from the terminal whenever
    // redlock can, and the terminal's keys reach the script, redlock and the child.
    plan.own_group = !terminal_.is_there();
    child_.start(plan);
    log_.line(fmt::format("the command runs as process {}", child_.pid()));
    if (!child_.finds_everything())
    {
        say(fmt::format(
            "{}: there is no /proc, so a loss ends only {}", in_quotes(asked_.common.resource),
            plan.own_group ? "the process group of the command"
                           : "the command itself, and none of its descendants"));
    }
}

void supervisor::on_event(const event& what)
{
    switch (what.kind)
    {
    case event_kind::signal:
        on_signal(what.signal, what.from_terminal);
        break;
    case event_kind::lost:
        on_loss(what.error);
        break;
    case event_kind::time_is_up:
        if (stage_ == stage::told)
        {
            kill_all();
            say(fmt::format(
                "{}: SIGKILL to the command: it hasn't ended within --grace",
                in_quotes(asked_.common.resource)));
        }
        break;
    case event_kind::inspected:
    case event_kind::refused:
    case event_kind::queued:
    case event_kind::acquired:
    case event_kind::released:
    case event_kind::shut_down:
        break;
    }
}

bool supervisor::finished()
{
    return child_.ended() && (stage_ == stage::running || child_.all_gone(stage_ == stage::killed));
}

ending supervisor::end()
{
    if (why_lost_ || child_.killed_by() != 0)
    {
        terminal_.restore();
    }
    const clock::time_point valid_until = held_.valid_until();
    const clock::duration left = valid_until - clock::now();
    log_.line(fmt::format(
        "the command has ended with {}{}", child_.exit_code(),
        why_lost_ && valid_until != clock::time_point{}
            ? fmt::format(", {:.3f} s before the validity ends", in_seconds(left))
            : std::string{}));
    if (!why_lost_ && left <= clock::duration::zero())
    {
        // redlock was paused and the command wasn't, so its last work may have overlapped with another client's.
        why_lost_ = errc::lease_lost;
        const bool disowned = valid_until == clock::time_point{};
        say(fmt::format(
            "{}: {}", in_quotes(asked_.common.resource),
            disowned ? what_is_lost(why_lost_, true)
                     : "the lock had expired before redlock saw the end of the command"));
    }
    if (why_lost_)
    {
        return {.exit_code = number_of(exit_code_of(why_lost_)), .signal = 0};
    }
    if (child_.exec_error() != 0)
    {
        say(exec_complaint(asked_.command.front(), child_.exec_error()));
        const bool missing = child_.exec_error() == ENOENT;
        return {.exit_code = number_of(missing ? exit_code::not_found : exit_code::cannot_run), .signal = 0};
    }
    return ending_of_command();
}

ending supervisor::ending_of_command() const
{
    const int killed_by = child_.killed_by();
    return {.exit_code = child_.exit_code(), .signal = ends_both(killed_by) ? killed_by : 0};
}

void supervisor::on_signal(int number, bool from_terminal)
{
    // The terminal sends to the foreground group, which the command may have left, as timeout(1) does.
    const bool command_has_it = from_terminal && terminal_.is_there() && child_.in_our_group();
    if (number == SIGCHLD)
    {
        on_child_changed();
    }
    else if (number == SIGCONT)
    {
        on_continued();
    }
    else if (number == SIGTSTP && !can_be_continued())
    {
        log_.line(fmt::format("signal {} is ignored: no shell could continue redlock", number));
    }
    else if (number == SIGTSTP)
    {
        stop_requested_ = true;
        if (!command_has_it)
        {
            child_.pass_on(SIGTSTP);
        }
        // If the child is stopped already, no SIGCHLD follows.
        on_child_changed();
    }
    else if (is_passed_on(number) && !command_has_it)
    {
        log_.line(fmt::format("signal {} is forwarded", number));
        last_passed_on_ = number;
        child_.pass_on(number);
    }
    // The terminal has sent all others to the command.
}

void supervisor::on_child_changed()
{
    child_.reap();
    if (stage_ == stage::killed && !child_.all_gone(true))
    {
        // A look may have missed some, and each end of a process shows its children.
        child_.signal_all(SIGKILL);
    }
    if (child_.ended() && stage_ == stage::running && terminal_.is_there() && child_.killed_by() != 0 &&
        child_.killed_by() == last_passed_on_)
    {
        // The child has no separate group, so its descendants haven't received the signal.
        child_.signal_all(std::exchange(last_passed_on_, 0));
    }
    const int stopped_by = child_.stopped_by();
    // At a terminal redlock stops with the child, since the shell waits until redlock stops.
    const bool stops_us = is_stop_of_terminal(stopped_by) || stop_requested_ || terminal_.is_there();
    if (stopped_by == 0 || !stops_us)
    {
        if (stopped_by != 0 && stage_ == stage::running && !told_of_stop_)
        {
            say_stopped();
        }
        told_of_stop_ = stopped_by != 0;
        return;
    }
    child_.forget_stop();
    if (stage_ != stage::running)
    {
        // The child must end. If redlock stopped too, the child would outlive the validity.
        child_.signal_all(SIGCONT);
    }
    else if (!can_be_continued())
    {
        say_stopped();
    }
    else if (!is_continued(events_))
    {
        stop_ourselves(stopped_by);
    }
    // Else on_continued() follows, and continues the child.
}

void supervisor::say_stopped() const
{
    say(fmt::format(
        "{}: the command is stopped; the lock is still held (kill -CONT {} continues the command)",
        in_quotes(asked_.common.resource), child_.pid()));
}

void supervisor::stop_ourselves(int stopped_by)
{
    // A descendant may have ignored the stop signal. It would continue while nothing extends the lease.
    child_.signal_all(SIGSTOP);
    const clock::time_point end = held_.valid_until() - kill_margin;
    say(fmt::format(
        "{}: stopped together with the command{}; in {:.1f} s the lock is lost and the command is killed",
        in_quotes(asked_.common.resource),
        stopped_by == SIGTTIN   ? ", which reads from the terminal in the background"
        : stopped_by == SIGTTOU ? ", which uses the terminal in the background"
                                : "",
        in_seconds(std::max(end - clock::now(), clock::duration::zero()))));
    {
        stop_watch watch{end, child_.everything()};
        if (!is_continued(events_))
        {
            ::kill(::getpid(), SIGSTOP);
        }
        // Execution continues here after a SIGCONT, which also arrives as an event: on_continued().
        if (watch.finish())
        {
            stage_ = stage::killed;
            why_lost_ = errc::lease_lost;
            say(fmt::format(
                "{}: the lock was lost while redlock was stopped: SIGKILL to the command",
                in_quotes(asked_.common.resource)));
            child_.signal_all(SIGKILL);
        }
    }
}

void supervisor::on_continued()
{
    stop_requested_ = false;
    child_.reap();
    // Checked before the child is continued: the lease may have expired, and another client may hold the lock.
    if (stage_ == stage::running && !held_.valid())
    {
        on_loss(errc::lease_lost);
    }
    if (stage_ == stage::killed)
    {
        return;
    }
    child_.signal_all(SIGCONT);
    log_.line("continued");
}

void supervisor::on_loss(const error_code& why)
{
    child_.reap();
    if (stage_ != stage::running || child_.ended())
    {
        return;
    }
    why_lost_ = why;
    const clock::time_point now = clock::now();
    const clock::time_point end = kill_at(now, asked_.grace, held_.valid_until());
    std::string measure = "SIGKILL to the command at once";
    if (end <= now)
    {
        kill_all();
    }
    else
    {
        stage_ = stage::told;
        kill_alarm_.set(end);
        child_.signal_all(SIGTERM);
        // A stopped process can't handle SIGTERM.
        child_.signal_all(SIGCONT);
        measure = fmt::format("SIGTERM to the command, SIGKILL follows in {:.3f} s", in_seconds(end - now));
    }
    say(fmt::format(
        "{}: {}: {}", in_quotes(asked_.common.resource),
        what_is_lost(why, held_.valid_until() == clock::time_point{}), measure));
}

void supervisor::kill_all()
{
    stage_ = stage::killed;
    child_.signal_all(SIGKILL);
}

} // namespace redlock::cli
