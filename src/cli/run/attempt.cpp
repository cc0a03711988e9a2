// SPDX-License-Identifier: BSL-1.0
// Connects to the masters, lets the library run its rounds, and ends in time.
#include "cli/run/attempt.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/message.hpp"
#include "cli/common/times.hpp"
#include "cli/run/descendants.hpp"
#include "cli/run/explain.hpp"
#include "cli/run/signals.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>

#include <unistd.h>

namespace redlock::cli
{

namespace
{

using std::chrono::milliseconds;

constexpr milliseconds reach_time{250};
constexpr milliseconds silent_time{500};
constexpr milliseconds min_wait{100};

/// Returns `--wait`, but at least the time that connecting takes, since no round starts earlier.
milliseconds whole_wait(const run_arguments& asked)
{
    return std::max(asked.wait.value(), min_wait);
}

time_limit left_to_wait(const run_arguments& asked, clock::time_point start)
{
    if (asked.wait.unlimited())
    {
        return no_limit;
    }
    const auto passed = std::chrono::ceil<milliseconds>(clock::now() - start);
    return std::max(whole_wait(asked) - passed, milliseconds{0});
}

keep_options keep_options_of(const run_arguments& asked, clock::time_point start)
{
    keep_options options{.ttl = asked.ttl, .max_hold = asked.max_hold};
    options.wait = left_to_wait(asked, start);
    if (asked.try_once)
    {
        options.max_rounds = 1;
    }
    options.extend_every = extend_every(asked.ttl);
    options.stop_margin = stop_margin(asked.grace);
    return options;
}

} // namespace

attempt::attempt(
    const run_arguments& asked, lock_manager& locks, mailbox& events, alarm& timer, const journal& record,
    const verbose_log& log)
    : asked_{asked},
      locks_{locks},
      events_{events},
      timer_{timer},
      record_{record},
      log_{log},
      start_{clock::now()}
{
    if (!asked.try_once && !asked.wait.unlimited())
    {
        give_up_at_ = start_ + whole_wait(asked) + node_timeout(asked.ttl);
    }
    if (!asked.try_once && ::isatty(STDERR_FILENO) == 1)
    {
        announce_at_ = start_ + silent_time;
    }
}

asio::awaitable<ending> attempt::run(lease& into)
{
    ending result = co_await reach_masters();
    if (result.signal != 0)
    {
        co_return result;
    }
    error_code why;
    if (const std::optional<error_code> settled = settled_by_reaching())
    {
        why = *settled;
    }
    else
    {
        why = co_await acquire(into, result);
    }
    if (why && result.signal == 0)
    {
        result = fail(why);
    }
    co_return result;
}

/// Gives each master a moment to be connected, so that the lock is acquired on all of them: until its first extension,
/// a lease on a bare quorum doesn't survive the failure of a master. A master that refuses isn't waited for.
asio::awaitable<ending> attempt::reach_masters()
{
    ending result;
    locks_.async_inspect(
        asked_.common.resource,
        [this](error_code, inspection found)
        {
            found_ = std::move(found);
            events_.push({.kind = event_kind::inspected});
        });
    const milliseconds longest = asked_.try_once ? reach_time : std::min(reach_time, whole_wait(asked_));
    timer_.set(start_ + longest);
    for (bool waiting = true; waiting && result.signal == 0;)
    {
        const event what = co_await events_.next();
        waiting = what.kind != event_kind::inspected && what.kind != event_kind::time_is_up;
        refused_ = refused_ || what.kind == event_kind::refused;
        if (what.kind == event_kind::signal)
        {
            on_signal(what.signal, result);
        }
    }
    timer_.unset();
    co_return result;
}

/// Returns why a round would be futile; empty if one may succeed.
std::optional<error_code> attempt::settled_by_reaching() const
{
    if (refused_)
    {
        return record_.refusal().reason;
    }
    if (asked_.try_once && found_ && !found_->masters().empty())
    {
        // One that forbids the inspection may grant locks.
        const auto is_reached = [](const master_inspection& one)
        {
            return !one.reason || one.reason == master_errc::no_permission ||
                   one.reason == master_errc::command_failed;
        };
        const auto reached = std::count_if(found_->masters().begin(), found_->masters().end(), is_reached);
        if (static_cast<std::size_t>(reached) < found_->quorum())
        {
            return errc::no_quorum;
        }
    }
    return std::nullopt;
}

asio::awaitable<error_code> attempt::acquire(lease& into, ending& result)
{
    error_code error;
    start(into);
    set_timer();
    while (waiting_)
    {
        const event what = co_await events_.next();
        switch (what.kind)
        {
        case event_kind::acquired:
            error = what.error;
            waiting_ = false;
            break;
        case event_kind::signal:
            on_signal(what.signal, result);
            break;
        case event_kind::time_is_up:
            on_time();
            break;
        case event_kind::refused:
            refused_ = true;
            cancel_.emit(asio::cancellation_type::terminal);
            break;
        case event_kind::queued:
            on_queued();
            break;
        default:
            break;
        }
    }
    timer_.unset();
    co_return error;
}

void attempt::start(lease& into)
{
    auto done = [this, &into](error_code error, lease got)
    {
        into = std::move(got);
        events_.push({.kind = event_kind::acquired, .error = error});
    };
    locks_.async_acquire_kept(
        asked_.common.resource, keep_options_of(asked_, start_), report_,
        asio::bind_cancellation_slot(cancel_.slot(), std::move(done)));
}

void attempt::on_signal(int number, ending& result)
{
    if (requests_end(number))
    {
        log_.line(fmt::format("signal {} ends the attempt", number));
        result.signal = number;
        cancel_.emit(asio::cancellation_type::terminal);
    }
    else if (is_stop_of_terminal(number) && !can_be_continued())
    {
        log_.line(fmt::format("signal {} is ignored: no shell could continue redlock", number));
    }
    else if (is_stop_of_terminal(number) && !is_continued(events_))
    {
        say(fmt::format("{}: stopped while waiting for the lock", in_quotes(asked_.common.resource)));
        ::kill(::getpid(), SIGSTOP);
    }
}

/// At a terminal, reports a new position, at most once per second.
void attempt::on_queued()
{
    if (announced_at_ && !announce_at_)
    {
        announce_at_ = *announced_at_ + std::chrono::seconds{1};
        set_timer();
    }
}

void attempt::on_time()
{
    const clock::time_point now = clock::now();
    if (announce_at_ && *announce_at_ <= now)
    {
        announce_at_.reset();
        announced_at_ = now;
        announce();
    }
    if (give_up_at_ && *give_up_at_ <= now)
    {
        give_up_at_.reset();
        cancel_.emit(asio::cancellation_type::terminal);
    }
    set_timer();
}

void attempt::set_timer()
{
    if (announce_at_ || give_up_at_)
    {
        constexpr auto never = clock::time_point::max();
        timer_.set(std::min(announce_at_.value_or(never), give_up_at_.value_or(never)));
    }
}

/// Reports at a terminal which client holds the resource, or which masters don't answer.
void attempt::announce()
{
    locks_.async_inspect(
        asked_.common.resource,
        [this](error_code, const inspection& found)
        {
            if (waiting_ && !found.masters().empty())
            {
                const std::optional<queue_position>& position = record_.position();
                say(fmt::format(
                    "waiting for {}{}{}: {}", in_quotes(asked_.common.resource),
                    asked_.wait.unlimited() ? "" : ", at most " + in_words(asked_.wait.value()),
                    position ? ", " + position_in_words(*position) : "", holder_of(found)));
            }
        });
}

ending attempt::fail(error_code why)
{
    const std::string name = in_quotes(asked_.common.resource);
    if (!report_.argument_error.empty())
    {
        say(report_.argument_error);
        return {.exit_code = number_of(exit_code_of(why)), .signal = 0};
    }
    if (refused_)
    {
        const master_down& refusal = record_.refusal();
        say(fmt::format(
            "can't lock {}: the system refuses to connect to the masters: {}{}", name,
            refusal.reason.message(),
            refusal.detail.empty() ? "" : fmt::format(" (\"{}\")", refusal.detail)));
        return {.exit_code = number_of(exit_code::system_error), .signal = 0};
    }
    if (why == asio::error::operation_aborted)
    {
        // The attempt was cancelled. The last decided round has the reason.
        const bool known = record_.last_round() && record_.last_round()->result;
        why = known ? record_.last_round()->result : error_code{errc::no_quorum};
    }
    const std::uint32_t rounds = report_.rounds;
    const std::string tried = rounds == 0   ? ""
                              : rounds == 1 ? " (tried once)"
                                            : fmt::format(" (tried {} times)", rounds);
    say(fmt::format("can't lock {}: {}{}{}", name, in_plain_words(why), tried, votes()));
    return {.exit_code = number_of(exit_code_of(why)), .signal = 0};
}

std::string attempt::votes() const
{
    // The votes of a cancelled round say less than those of the round before it.
    const bool cut_off = report_.result == asio::error::operation_aborted;
    if (record_.last_round() && (cut_off || report_.masters().empty()))
    {
        return votes_of(*record_.last_round());
    }
    if (!report_.masters().empty())
    {
        return votes_of(report_);
    }
    return found_ ? holders_of(*found_) : std::string{};
}

} // namespace redlock::cli
