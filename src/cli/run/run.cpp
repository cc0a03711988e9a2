// SPDX-License-Identifier: BSL-1.0
// The sequence of redlock run: acquire, start the child, supervise it until its end, release.
#include "cli/run/run.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/exit_code.hpp"
#include "cli/common/leave.hpp"
#include "cli/common/manager_config.hpp"
#include "cli/common/message.hpp"
#include "cli/common/times.hpp"
#include "cli/run/alarm.hpp"
#include "cli/run/attempt.hpp"
#include "cli/run/explain.hpp"
#include "cli/run/journal.hpp"
#include "cli/run/mailbox.hpp"
#include "cli/run/signals.hpp"
#include "cli/run/supervisor.hpp"
#include "cli/run/terminal.hpp"
#include "cli/run/verbose.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace redlock::cli
{

namespace
{

using std::chrono::milliseconds;

/// The time to wait for the other masters once a quorum has confirmed a release. What was sent to them still arrives,
/// and the ttl frees the rest.
constexpr milliseconds settle_time{100};

/// The time to wait for the inspection after a loss once the command has ended.
constexpr milliseconds explain_time{500};

config config_of(const run_arguments& asked, journal& record)
{
    config options = manager_config(asked.common);
    options.node_timeout = node_timeout(asked.ttl);
    if (asked.guarded)
    {
        options.guarded.emplace();
    }
    options.observer = record.observer();
    return options;
}

/// One run. It uses one thread, and handles its events in the order of the mailbox.
class session
{
  public:
    session(asio::io_context& io, const run_arguments& asked, const verbose_log& log)
        : asked_{asked},
          log_{log},
          events_{io},
          signals_{io, events_},
          alarm_{io, events_},
          record_{log, events_, asked.common.servers.masters.size()},
          locks_{io, config_of(asked, record_)},
          attempt_{asked, locks_, events_, alarm_, record_, log}
    {
    }

    asio::awaitable<ending> run()
    {
        ending result = co_await attempt_.run(lease_);
        if (lease_ && result.signal == 0)
        {
            result = co_await run_command();
        }
        if (lease_)
        {
            co_await release();
        }
        co_await settle();
        signals_.close();
        alarm_.close();
        co_return result;
    }

  private:
    asio::awaitable<ending> run_command()
    {
        ending result;
        supervisor child{asked_, lease_, terminal_, events_, alarm_, log_};
        if (!lease_.valid())
        {
            say(fmt::format(
                "{}: the lock was acquired too late, so the command isn't run: give a longer --ttl",
                in_quotes(asked_.common.resource)));
            result.exit_code = number_of(exit_code::held_by_other);
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
        // A signal that came as the command started may reach it twice, and none is missed.
        signals_.read();
        events_.before_command();
        lease_.async_wait_lost([this](error_code error, error_code why)
                               { events_.push({.kind = event_kind::lost, .error = error ? error : why}); });
        while (!child.finished())
        {
            const event what = co_await events_.next();
            child.on_event(what);
            if (what.kind == event_kind::lost && what.error == errc::lease_lost)
            {
                ask_why();
            }
        }
        result = child.end();
        co_return result;
    }

    /// Inspects the key on all masters, and reports the answers as soon as they are known.
    void ask_why()
    {
        explaining_ = true;
        locks_.async_inspect(
            asked_.common.resource,
            [this](error_code, const inspection& found)
            {
                explain(found);
                events_.push({.kind = event_kind::inspected});
            });
    }

    void explain(const inspection& found)
    {
        if (std::exchange(explaining_, false))
        {
            say(fmt::format(
                "{}: {}", in_quotes(asked_.common.resource),
                why_lost(record_.failed_extension(), found, lease_.owner_id())));
        }
    }

    /// Releases the lease. An unconfirmed release is only a warning, since the ttl frees the keys.
    asio::awaitable<void> release()
    {
        lease_.async_release([this](error_code error)
                             { events_.push({.kind = event_kind::released, .error = error}); });
        const error_code error = co_await ended(event_kind::released, clock::time_point::max());
        if (error == errc::unconfirmed)
        {
            say(fmt::format(
                "warning: no quorum confirmed the release of {}; its --ttl of {} frees it",
                in_quotes(asked_.common.resource), in_words(asked_.ttl)));
        }
    }

    /// Waits a moment for the inspection after a loss, and for the remaining confirmations of a release.
    asio::awaitable<void> settle()
    {
        // The inspection before the attempt may end only now as well.
        const clock::time_point until = clock::now() + explain_time;
        for (error_code ended_early; explaining_ && !ended_early && clock::now() < until;)
        {
            ended_early = co_await ended(event_kind::inspected, until);
        }
        explain({});
        locks_.async_shutdown([this](error_code error)
                              { events_.push({.kind = event_kind::shut_down, .error = error}); });
        const error_code ignored = co_await ended(event_kind::shut_down, clock::now() + settle_time);
        static_cast<void>(ignored);
    }

    /// Waits for the event `which`, until `at_most`. A signal that ends programs ends the wait with
    /// `errc::unconfirmed`.
    asio::awaitable<error_code> ended(event_kind which, clock::time_point at_most)
    {
        error_code result;
        alarm_.set(at_most);
        for (bool waiting = true; waiting;)
        {
            const event what = co_await events_.next();
            if (what.kind == which)
            {
                result = what.error;
                waiting = false;
            }
            else if (what.kind == event_kind::signal && requests_end(what.signal))
            {
                log_.line(fmt::format("signal {}: not waiting for the masters any longer", what.signal));
                result = errc::unconfirmed;
                waiting = false;
            }
            else if (what.kind == event_kind::time_is_up && clock::now() >= at_most)
            {
                log_.line("not waiting for the other masters any longer");
                waiting = false;
            }
        }
        co_return result;
    }

    const run_arguments& asked_;
    const verbose_log& log_;
    const terminal terminal_; // Saves the terminal's settings before the command runs.
    mailbox events_;
    signal_source signals_; // Before the manager, so that threads started later inherit the blocked signals.
    alarm alarm_;
    journal record_;
    lock_manager locks_;
    attempt attempt_;
    lease lease_;
    bool explaining_ = false; // An inspection after a loss is running.
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
