// SPDX-License-Identifier: BSL-1.0
// What becomes of the child, event by event.
#include "cli/supervisor.hpp"

#include "cli/exit_code.hpp"
#include "cli/message.hpp"
#include "cli/signals.hpp"
#include "cli/times.hpp"

#include <redlock/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <system_error>

#include <unistd.h>

namespace redlock::cli
{

namespace
{

double in_seconds(clock::duration value)
{
    return std::chrono::duration<double>{value}.count();
}

/// As a shell says it.
std::string exec_complaint(const std::string& program, int error)
{
    const bool looked_up = program.find('/') == std::string::npos;
    const std::string why =
        error == ENOENT && looked_up ? "command not found" : std::generic_category().message(error);
    return fmt::format("{}: {}", short_text{program}.view(), why);
}

} // namespace

supervisor::supervisor(
    const run_arguments& asked, const lease& held, alarm& kill_alarm, const verbose_log& log)
    : asked_{asked}, held_{held}, kill_alarm_{kill_alarm}, log_{log}
{
}

void supervisor::start()
{
    child_plan plan;
    plan.command = asked_.command;
    plan.environment = {
        "REDLOCK_RESOURCE=" + asked_.common.resource, "REDLOCK_OWNER_ID=" + std::string{held_.owner_id()}};
    plan.takes_terminal = terminal_.is_ours();
    child_.start(plan);
    terminal_.give_to(child_.group());
    log_.line(fmt::format("the command runs as process {}", child_.group()));
}

void supervisor::on_event(const event& what)
{
    switch (what.kind)
    {
    case event_kind::signal:
        on_signal(what.signal);
        break;
    case event_kind::lost:
        on_loss(what.error);
        break;
    case event_kind::time_is_up:
        if (stage_ == stage::told)
        {
            kill_group();
        }
        break;
    case event_kind::inspected:
    case event_kind::acquired:
    case event_kind::given_back:
    case event_kind::shut_down:
        break;
    }
}

bool supervisor::finished() noexcept
{
    return child_.ended() && (stage_ == stage::running || child_.group_gone(stage_ == stage::killed));
}

int supervisor::end()
{
    terminal_.take_back();
    const clock::time_point valid_until = held_.valid_until();
    const clock::duration left = valid_until - clock::now();
    log_.line(fmt::format(
        "the command has ended with {}{}", child_.exit_code(),
        why_lost_ && valid_until != clock::time_point{}
            ? fmt::format(", {:.3f} s before the validity ends", in_seconds(left))
            : std::string{}));
    if (!why_lost_ && left <= clock::duration::zero())
    {
        // We were paused, and the command wasn't: what it did last may have been beside somebody else.
        why_lost_ = errc::lease_lost;
        say(fmt::format(
            "{}: the lease had lapsed before the command was seen to end",
            in_quotes(asked_.common.resource)));
    }
    if (why_lost_)
    {
        return number_of(exit_code_of(why_lost_));
    }
    if (child_.exec_error() != 0)
    {
        say(exec_complaint(asked_.command.front(), child_.exec_error()));
        return number_of(child_.exec_error() == ENOENT ? exit_code::not_found : exit_code::cannot_run);
    }
    return child_.exit_code();
}

void supervisor::on_signal(int number)
{
    if (number == SIGCHLD)
    {
        on_child_changed();
    }
    else if (number == SIGCONT)
    {
        on_continued();
    }
    else if (number == SIGTSTP)
    {
        stop_asked_ = true;
        child_.signal(SIGTSTP);
        // It may be stopped already, and then nothing changes any more.
        on_child_changed();
    }
    else if (is_passed_on(number))
    {
        log_.line(fmt::format("signal {} is passed on", number));
        child_.signal(number);
    }
}

void supervisor::on_child_changed()
{
    child_.reap();
    const int stopped_by = child_.stopped_by();
    // With the terminal in its hands, whatever stops it stops us: else nobody would be there to take the keys.
    const bool stops_us = is_stop_of_terminal(stopped_by) || stop_asked_ || terminal_.is_given();
    if (stopped_by == 0 || !stops_us)
    {
        return;
    }
    child_.forget_stop();
    if (stage_ != stage::running)
    {
        // It has to end: if we stopped, the validity would pass with the group still there.
        child_.signal(SIGCONT);
    }
    else if (stopped_by != SIGTSTP && terminal_.is_ours())
    {
        // It wanted the terminal, which we got when we were put into the foreground.
        terminal_.give_to(child_.group());
        child_.signal(SIGCONT);
    }
    else
    {
        stop_ourselves();
    }
}

void supervisor::stop_ourselves()
{
    // One of its group may have ignored what stopped the others, and would go on while nobody extends the lease.
    child_.signal(SIGSTOP);
    terminal_.take_back();
    log_.line("stopped, together with the command");
    ::kill(::getpid(), SIGSTOP);
    // Here we go on after a SIGCONT, which also comes as an event: on_continued.
}

void supervisor::on_continued()
{
    stop_asked_ = false;
    // Before the child does anything. Meanwhile the lease may have lapsed, and somebody else may have it.
    if (stage_ == stage::running && !held_.valid())
    {
        on_loss(errc::lease_lost);
    }
    if (stage_ == stage::killed)
    {
        return;
    }
    log_.line("continued");
    terminal_.give_to(child_.group());
    child_.signal(SIGCONT);
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
    if (end <= now)
    {
        kill_group();
    }
    else
    {
        stage_ = stage::told;
        kill_alarm_.set(end);
        child_.signal(SIGTERM);
        // A stopped one can't act on it.
        child_.signal(SIGCONT);
        log_.line(fmt::format("SIGTERM to the command; SIGKILL follows in {:.3f} s", in_seconds(end - now)));
    }
    say(fmt::format("{}: {}: the command is stopped", in_quotes(asked_.common.resource), what_happened(why)));
}

void supervisor::kill_group()
{
    child_.signal(SIGKILL);
    stage_ = stage::killed;
    log_.line("SIGKILL to the command");
}

} // namespace redlock::cli
