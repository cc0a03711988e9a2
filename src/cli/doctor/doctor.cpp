// SPDX-License-Identifier: BSL-1.0
// Examines all masters, probes each, and writes the diagnosis as text or JSON.
#include "cli/doctor/doctor.hpp"

#include "cli/common/exit_code.hpp"
#include "cli/common/leave.hpp"
#include "cli/common/manager_config.hpp"
#include "cli/common/message.hpp"
#include "cli/doctor/diagnosis.hpp"
#include "cli/doctor/diagnosis_json.hpp"
#include "cli/doctor/diagnosis_text.hpp"
#include "cli/doctor/probe.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstddef>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::cli
{

namespace
{

namespace asio = boost::asio;

bool is_local(const master& one)
{
    return one.is_unix() || one.host() == "localhost" || one.host() == "::1" ||
           one.host().starts_with("127.");
}

/// Returns the options of a manager of one master alone.
config only(const config& of_all, const master& one)
{
    config options = of_all;
    options.masters = {one};
    options.tls = one.is_tls() ? of_all.tls : tls_options{};
    return options;
}

/// Collects the facts that need a manager of this master alone.
asio::awaitable<void> look_at(const config& of_all, const master& one, bool with_probe, master_facts& facts)
{
    facts.user = one.username().empty() ? "default" : one.username();
    facts.key_prefix = of_all.key_prefix;
    facts.is_local = is_local(one);
    const bool logs_in = !one.username().empty() || !one.password().empty();
    facts.is_open = !facts.examined.reason && !logs_in;
    if (!facts.examined.reason && logs_in)
    {
        // The name of a master contains neither user nor password.
        config options = only(of_all, master{one.name()});
        facts.is_open = co_await answers_inspection(std::move(options));
    }
    if (!facts.examined.reason && with_probe)
    {
        config options = only(of_all, one);
        const bool tries_queue = !has_risk(facts.examined, risk::limited_queue);
        facts.probed = co_await probe_master(std::move(options), tries_queue);
    }
}

/// Examines all masters. Ends the program if that is impossible.
std::vector<master_facts> examine(asio::io_context& io, const config& options)
{
    lock_manager locks{io, options};
    std::vector<master_facts> found;
    locks.async_examine(
        [&](error_code error, std::vector<master_examination> examined)
        {
            if (error)
            {
                say(in_plain_words(error));
                leave({number_of(exit_code_of(error)), 0});
            }
            for (master_examination& each : examined)
            {
                if (options.guarded && !each.guarded)
                {
                    each.guarded.emplace().reason = each.reason; // Without a connection, nothing was seen.
                }
                found.emplace_back().examined = std::move(each);
            }
            io.stop();
        });
    io.run();
    io.restart();
    return found;
}

} // namespace

void doctor(const doctor_arguments& asked)
{
    // leave_with_output() detects a closed pipe, like a full disk.
    std::signal(SIGPIPE, SIG_IGN);
    config options = manager_config(asked.servers);
    options.key_prefix = asked.prefix;
    asio::io_context io{1};
    config examined = options;
    if (asked.guarded)
    {
        examined.guarded.emplace();
    }
    std::vector<master_facts> masters = examine(io, examined);
    std::size_t left = masters.size();
    for (std::size_t index = 0; index < masters.size(); ++index)
    {
        const auto one_less = [&io, &left](const std::exception_ptr& thrown)
        {
            if (thrown)
            {
                std::rethrow_exception(thrown);
            }
            if (--left == 0)
            {
                io.stop();
            }
        };
        asio::co_spawn(io, look_at(options, options.masters[index], asked.probe, masters[index]), one_less);
    }
    io.run();
    const diagnosis all = diagnose(masters);
    fmt::print("{}", asked.json ? boost::json::serialize(json_of(all)) + '\n' : text_of(all));
    leave_with_output(exit_code_of(all));
}

} // namespace redlock::cli
