// SPDX-License-Identifier: BSL-1.0
// What the command is asked for on its command line.
#pragma once

#include <redlock/options.hpp>
#include <redlock/tls.hpp>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace redlock::cli
{

/// The variable with the masters' URLs.
inline constexpr const char* masters_variable = "REDLOCK_MASTERS";

/// What all subcommands take: where the masters are, and how they are spoken to.
struct master_arguments
{
    /// URLs, as given, passwords in them.
    std::vector<std::string> masters;
    tls_options tls;
};

/// What those take that are about one resource.
struct resource_arguments
{
    master_arguments servers;
    std::string prefix = "lock:";
    std::string resource;
};

/// redlock run
struct run_arguments
{
    resource_arguments common;
    std::chrono::milliseconds ttl{};
    time_limit max_hold = no_limit;
    time_limit wait = no_limit;
    bool try_once = false;
    std::chrono::milliseconds grace{};
    bool verbose = false;
    /// The command gets REDLOCK_MASTERS, if we have it.
    bool inherit_masters = true;
    std::vector<std::string> command;
};

/// redlock status
struct status_arguments
{
    resource_arguments common;
    bool json = false;
};

/// redlock doctor
struct doctor_arguments
{
    master_arguments servers;
    std::string prefix;
    bool probe = true;
    bool json = false;
};

/// The command line was answered already (help, version, a refusal): what to exit with.
struct answered
{
    int exit_code;
};

/// What may be asked for.
using request = std::variant<answered, run_arguments, status_arguments, doctor_arguments>;

/// Reads the command line and the environment.
request read_arguments(int count, const char* const* words);

} // namespace redlock::cli
