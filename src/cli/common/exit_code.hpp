// SPDX-License-Identifier: BSL-1.0
// The exit codes of the command.
#pragma once

#include <redlock/error.hpp>

namespace redlock::cli
{

/// Exit codes, taken from sysexits.h and from shells where these define one. `run` otherwise ends with the exit code of
/// its command, or with 128 + n if signal n killed it.
enum class exit_code : int
{
    success =
        0, ///< Success. `status`: a quorum holds the resource for one owner. `doctor`: all masters are good.
    not_held = 1,        ///< `status`: no quorum holds the resource for one owner.
    found = 1,           ///< `doctor`: a quorum can be used, and at least one master isn't good.
    not_provisioned = 1, ///< `provision`: the masters aren't a group, at least not completely.
    usage = 64,          ///< The command line can't be understood, or an option can't be used (EX_USAGE).
    no_quorum = 69,      ///< Fewer than a quorum of the masters answered, or can be used (EX_UNAVAILABLE).
    system_error = 71,   ///< The operating system refused a process, a descriptor or memory (EX_OSERR).
    held_by_other =
        75,           ///< Another client holds the resource, or the lock was acquired too late (EX_TEMPFAIL).
    lost = 76,        ///< The lease was lost, so the command was stopped (EX_PROTOCOL's number).
    hold_limit = 77,  ///< `--max-hold` was reached, so the command was stopped (EX_NOPERM's number).
    bad_masters = 78, ///< The list of masters is invalid (EX_CONFIG).
    cannot_run = 126, ///< The command exists and can't be run, as in a shell.
    not_found = 127   ///< The command doesn't exist, as in a shell.
};

/// Returns the exit code for the error of a library operation.
exit_code exit_code_of(const error_code& error) noexcept;

constexpr int number_of(exit_code code) noexcept
{
    return static_cast<int>(code);
}

} // namespace redlock::cli
