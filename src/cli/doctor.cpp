// SPDX-License-Identifier: BSL-1.0
// One examination of all masters, its diagnosis as text or as JSON, and the verdict.
#include "cli/doctor.hpp"

#include "cli/diagnosis.hpp"
#include "cli/diagnosis_json.hpp"
#include "cli/diagnosis_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/leave.hpp"
#include "cli/manager_config.hpp"
#include "cli/message.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <csignal>
#include <utility>
#include <vector>

namespace redlock::cli
{

void doctor(const doctor_arguments& asked)
{
    // A reader that has gone is seen at the end, like a disk that is full.
    std::signal(SIGPIPE, SIG_IGN);
    boost::asio::io_context io{1};
    lock_manager locks{io, manager_config(asked.servers)};
    error_code error;
    std::vector<master_examination> examined;
    locks.async_examine(
        [&](error_code result, std::vector<master_examination> found)
        {
            error = result;
            examined = std::move(found);
            io.stop();
        });
    io.run();
    if (error)
    {
        say(what_happened(error));
        leave({number_of(exit_code_of(error)), 0});
    }
    const diagnosis all = diagnose(examined);
    fmt::print("{}", asked.json ? json_of(all) + '\n' : text_of(all));
    leave_with_output(exit_code_of(all.result));
}

} // namespace redlock::cli
