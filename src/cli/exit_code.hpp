// SPDX-License-Identifier: BSL-1.0
// What the command ends with: the one table of its exit codes.
#pragma once

#include <redlock/error.hpp>

namespace redlock::cli
{

/// After sysexits.h where that has a word for it, and after the shells where those have. `run` otherwise ends with
/// the exit code of its command, and with 128 + n if that was killed by signal n.
enum class exit_code : int
{
    success =
        0, ///< All went well; `status`: a quorum holds the resource for one owner; `doctor`: all are good.
    not_held = 1,       ///< `status`: no quorum holds the resource for one owner.
    found = 1,          ///< `doctor`: a quorum can be used, and a master is less than it should be.
    usage = 64,         ///< The command line can't be understood, or an option can't be used (EX_USAGE).
    no_quorum = 69,     ///< Fewer than a quorum of the masters answered, or can be used (EX_UNAVAILABLE).
    system_error = 71,  ///< The system refused something: no process, no descriptor (EX_OSERR).
    held_by_other = 75, ///< Another holds the resource, or it was got too late to be of use (EX_TEMPFAIL).
    lost = 76,          ///< The lease was lost, so the command was stopped (EX_PROTOCOL's number).
    hold_limit = 77,    ///< `--max-hold` was reached, so the command was stopped (EX_NOPERM's number).
    bad_masters = 78,   ///< The masters can't be used as they are given (EX_CONFIG).
    cannot_run = 126,   ///< The command is there and can't be run, as a shell says it.
    not_found = 127     ///< The command doesn't exist, as a shell says it.
};

/// The exit code for what an operation of the library ended with.
exit_code exit_code_of(const error_code& error) noexcept;

constexpr int number_of(exit_code code) noexcept
{
    return static_cast<int>(code);
}

} // namespace redlock::cli
