// SPDX-License-Identifier: BSL-1.0
// The flow of redlock run: acquire, start the child, see to it until it has ended, give back.
#include "cli/run.hpp"

#include "cli/alarm.hpp"
#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/leave.hpp"
#include "cli/mailbox.hpp"
#include "cli/manager_config.hpp"
#include "cli/message.hpp"
#include "cli/signals.hpp"
#include "cli/supervisor.hpp"
#include "cli/times.hpp"
#include "cli/verbose.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <utility>

#include <unistd.h>

namespace redlock::cli
{

namespace
{

constexpr std::chrono::milliseconds reach_time{250};

config config_of(const run_arguments& asked, const verbose_log& log)
{
    config options = manager_config(asked.common);
    options.node_timeout = node_timeout(asked.ttl);
    options.observer = log.observer();
    return options;
}

keep_options keep_options_of(const run_arguments& asked)
{
    keep_options options{.ttl = asked.ttl, .max_hold = asked.max_hold};
    options.wait = asked.wait;
    if (asked.try_once)
    {
        options.max_rounds = 1;
    }
    options.extend_every = extend_every(asked.ttl);
    options.stop_margin = stop_margin(asked.grace);
    return options;
}

/// Why there is no lease, for a person.
std::string refusal(const run_arguments& asked, const error_code& error, const report& told)
{
    if (!told.complaint.empty())
    {
        return told.complaint;
    }
    const std::string waited = told.rounds == 1 ? "tried once" : fmt::format("tried {} times", told.rounds);
    std::string text =
        fmt::format("can't lock {}: {} ({})", in_quotes(asked.common.resource), what_happened(error), waited);
    const std::string votes = told.to_string();
    const std::size_t first_vote = votes.find('\n');
    if (first_vote != std::string::npos)
    {
        text += votes.substr(first_vote);
    }
    return text;
}

/// Everything of one run. All of it happens on one thread, in the order of the mailbox.
class session
{
  public:
    session(asio::io_context& io, const run_arguments& asked, const verbose_log& log)
        : asked_{asked},
          log_{log},
          events_{io},
          signals_{io, events_},
          alarm_{io, events_},
          locks_{io, config_of(asked, log)}
    {
    }

    asio::awaitable<ending> run()
    {
        ending result = co_await acquire();
        if (lease_ && result.signal == 0)
        {
            result = co_await run_command();
        }
        if (lease_)
        {
            co_await give_back();
        }
        co_await shut_down();
        signals_.close();
        alarm_.close();
        co_return result;
    }

  private:
    /// A lease on all masters outlives any one of them, one on a bare quorum doesn't until its first extension. So each
    /// master gets a moment to be reached; one that refuses costs nothing of it.
    asio::awaitable<ending> reach_masters()
    {
        ending result;
        locks_.async_inspect(
            asked_.common.resource,
            [this](error_code, const inspection&) { events_.push({.kind = event_kind::inspected}); });
        alarm_.set(clock::now() + reach_time);
        for (bool waiting = true; waiting && result.signal == 0;)
        {
            const event what = co_await events_.next();
            waiting = what.kind != event_kind::inspected && what.kind != event_kind::time_is_up;
            if (what.kind == event_kind::signal)
            {
                on_signal_before_child(what.signal, result);
            }
        }
        alarm_.unset();
        co_return result;
    }

    /// Until there is a lease, or a reason why there is none.
    asio::awaitable<ending> acquire()
    {
        ending result = co_await reach_masters();
        if (result.signal != 0)
        {
            co_return result;
        }
        error_code error;
        start_acquire();
        for (bool waiting = true; waiting;)
        {
            const event what = co_await events_.next();
            if (what.kind == event_kind::acquired)
            {
                error = what.error;
                waiting = false;
            }
            else if (what.kind == event_kind::signal)
            {
                on_signal_before_child(what.signal, result);
            }
        }
        if (error && result.signal == 0)
        {
            say(refusal(asked_, error, report_));
            result.exit_code = number_of(exit_code_of(error));
        }
        co_return result;
    }

    void start_acquire()
    {
        auto done = [this](error_code error, lease got)
        {
            lease_ = std::move(got);
            events_.push({.kind = event_kind::acquired, .error = error});
        };
        locks_.async_acquire_kept(
            asked_.common.resource, keep_options_of(asked_), report_,
            asio::bind_cancellation_slot(cancel_.slot(), std::move(done)));
    }

    void on_signal_before_child(int number, ending& result)
    {
        if (asks_to_end(number))
        {
            log_.line(fmt::format("signal {} ends the attempt", number));
            result.signal = number;
            cancel_.emit(asio::cancellation_type::terminal);
        }
        else if (number == SIGTSTP)
        {
            ::kill(::getpid(), SIGSTOP);
        }
    }

    asio::awaitable<ending> run_command()
    {
        ending result;
        supervisor child{asked_, lease_, alarm_, log_};
        if (!lease_.valid())
        {
            say(fmt::format(
                "{}: the lease has lapsed before the command ran", in_quotes(asked_.common.resource)));
            result.exit_code = number_of(exit_code::lost);
            co_return result;
        }
        try
        {
            child.start();
        }
        catch (const system_error& error)
        {
            result.exit_code = refuse(error);
            co_return result;
        }
        lease_.async_wait_lost([this](error_code error, error_code why)
                               { events_.push({.kind = event_kind::lost, .error = error ? error : why}); });
        while (!child.finished())
        {
            const event what = co_await events_.next();
            child.on_event(what);
        }
        result.exit_code = child.end();
        co_return result;
    }

    /// The keys are deleted. It isn't worth more than a warning if that can't be confirmed: the ttl frees them.
    asio::awaitable<void> give_back()
    {
        lease_.async_release(
            report_,
            [this](error_code error) { events_.push({.kind = event_kind::given_back, .error = error}); });
        const error_code error = co_await ended(event_kind::given_back);
        if (error == errc::unconfirmed)
        {
            say(fmt::format(
                "warning: no quorum confirmed that {} was given back; its ttl of {} frees it",
                in_quotes(asked_.common.resource), in_words(asked_.ttl)));
        }
    }

    asio::awaitable<void> shut_down()
    {
        locks_.async_shutdown([this](error_code error)
                              { events_.push({.kind = event_kind::shut_down, .error = error}); });
        const error_code ignored = co_await ended(event_kind::shut_down);
        static_cast<void>(ignored);
    }

    /// Waits until the release or the shutdown has ended, or a signal asks to end without it.
    asio::awaitable<error_code> ended(event_kind which)
    {
        error_code result;
        for (bool waiting = true; waiting;)
        {
            const event what = co_await events_.next();
            if (what.kind == which)
            {
                result = what.error;
                waiting = false;
            }
            else if (what.kind == event_kind::signal && asks_to_end(what.signal))
            {
                log_.line(fmt::format("signal {}: not waiting for the masters any longer", what.signal));
                waiting = false;
            }
        }
        co_return result;
    }

    const run_arguments& asked_;
    const verbose_log& log_;
    mailbox events_;
    signal_source signals_; // First of all: what starts a thread later finds the signals blocked.
    alarm alarm_;
    asio::cancellation_signal cancel_;
    report report_;
    lock_manager locks_;
    lease lease_;
};

} // namespace

void run(const run_arguments& asked)
{
    const verbose_log log{asked.verbose};
    asio::io_context io{1};
    session one{io, asked, log};
    ending result;
    std::exception_ptr problem;
    asio::co_spawn(
        io, one.run(),
        [&](std::exception_ptr thrown, ending value)
        {
            problem = thrown;
            result = value;
            io.stop();
        });
    io.run();
    if (problem)
    {
        std::rethrow_exception(problem);
    }
    leave(result);
}

} // namespace redlock::cli
