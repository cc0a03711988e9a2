// SPDX-License-Identifier: BSL-1.0
// Runs the provisioning of the masters, with its progress and its signals.
#include "cli/provision/provision.hpp"

#include "cli/common/duration.hpp"
#include "cli/common/leave.hpp"
#include "cli/common/manager_config.hpp"
#include "cli/common/message.hpp"
#include "cli/provision/provision_output.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <variant>

#include <unistd.h>

namespace redlock::cli
{

namespace
{

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds patience{5000}; // For each answer of a master.

/// Reports the time that is left, at a terminal.
class progress
{
  public:
    explicit progress(asio::io_context& io) : timer_{io} {}

    void on_event(const event& what)
    {
        const auto* const begun = std::get_if<master_quarantined>(&what);
        if (begun != nullptr && ends_ != begun->ends)
        {
            ends_ = begun->ends;
            pause_ = (begun->ends - clock::now()) / times;
            next();
        }
    }
    void stop() { timer_.cancel(); }

  private:
    /// Ten times during the wait, and at most once a second.
    static constexpr int times = 10;
    static constexpr milliseconds shortest{1000};

    void next()
    {
        timer_.expires_after(std::max<clock::duration>(shortest, pause_));
        timer_.async_wait(
            [this](error_code stopped)
            {
                const auto left = std::chrono::ceil<milliseconds>(ends_ - clock::now());
                if (!stopped && left > milliseconds{0})
                {
                    say(fmt::format("waits for another {}", in_words(left)));
                    next();
                }
            });
    }

    asio::steady_timer timer_;
    clock::time_point ends_{};
    clock::duration pause_{0};
};

/// The signals that end the run. One that was ignored when the program was started stays ignored, as nohup requires.
class end_signals
{
  public:
    explicit end_signals(asio::io_context& io) : signals_{io}
    {
        for (const int number : {SIGINT, SIGTERM, SIGHUP})
        {
            struct sigaction present
            {
            };
            if (::sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_IGN)
            {
                signals_.add(number);
            }
        }
    }

    /// Ends the run by the first signal, and the program by the second one.
    void watch(asio::cancellation_signal& run)
    {
        signals_.async_wait(
            [this, &run](error_code stopped, int number)
            {
                if (stopped)
                {
                    return;
                }
                if (number_ != 0)
                {
                    leave({0, number});
                }
                number_ = number;
                run.emit(asio::cancellation_type::terminal);
                watch(run);
            });
    }
    void stop() { signals_.cancel(); }
    /// The first one that has arrived; 0 for none.
    int number() const noexcept { return number_; }

  private:
    asio::signal_set signals_;
    int number_ = 0;
};

void write(const provision_arguments& asked, const provision_report& report)
{
    if (asked.json)
    {
        fmt::print("{}\n", boost::json::serialize(json_of(report)));
    }
    else
    {
        fmt::print("{}", text_of(report, report.masters.size() - asked.options.leaving));
    }
}

} // namespace

void provision(const provision_arguments& asked)
{
    // leave_with_output() detects a closed pipe, like a full disk.
    std::signal(SIGPIPE, SIG_IGN);
    config options = manager_config(asked.servers);
    options.key_prefix = asked.prefix;
    // A run needs all masters, and isn't urgent.
    options.connect_timeout = asked.servers.connect_timeout.value_or(patience);
    options.response_timeout = patience;
    if (!asked.group.empty())
    {
        options.guarded.emplace(guarded_options{.group = asked.group});
    }
    asio::io_context io{1};
    progress shown{io};
    if (::isatty(STDERR_FILENO) != 0)
    {
        options.observer.on_event = [&shown](const event& what) { shown.on_event(what); };
    }
    end_signals signals{io};
    asio::cancellation_signal cancel;
    signals.watch(cancel);
    say(intention(asked.options, options));
    provision_report report;
    async_provision(
        io, options, asked.options, report,
        asio::bind_cancellation_slot(
            cancel.slot(),
            [&](error_code)
            {
                shown.stop();
                signals.stop();
                io.stop();
            }));
    io.run();
    if (!report.argument_error.empty())
    {
        say(in_terms_of_command(report.argument_error));
        leave({number_of(exit_code_of(report.result)), 0});
    }
    write(asked, report);
    if (report.result && signals.number() != 0)
    {
        std::fflush(stdout);
        leave({0, signals.number()});
    }
    leave_with_output(exit_code_of(report));
}

} // namespace redlock::cli
