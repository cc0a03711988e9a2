// SPDX-License-Identifier: BSL-1.0
// The parsed command line.
#pragma once

#include <redlock/options.hpp>
#include <redlock/provision.hpp>
#include <redlock/tls.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace redlock::cli
{

/// The environment variable with the masters' URLs.
inline constexpr const char* masters_variable = "REDLOCK_MASTERS";

/// The environment variable with the fencing token of the lock.
inline constexpr const char* token_variable = "REDLOCK_FENCING_TOKEN";

/// The arguments of every subcommand: the masters, TLS, and the limit for connecting.
struct master_arguments
{
    /// URLs as given, including passwords.
    std::vector<std::string> masters;
    tls_options tls;
    /// Empty: the default of the subcommand.
    std::optional<std::chrono::milliseconds> connect_timeout{};
};

/// The arguments of subcommands for one resource.
struct resource_arguments
{
    master_arguments servers;
    std::string prefix = "lock:";
    std::string resource;
};

/// Arguments of `redlock run`.
struct run_arguments
{
    resource_arguments common;
    std::chrono::milliseconds ttl{};
    time_limit max_hold = no_limit;
    time_limit wait = no_limit;
    bool try_once = false;
    std::chrono::milliseconds grace{};
    bool verbose = false;
    bool guarded = false;
    /// Passes REDLOCK_MASTERS on to the command.
    bool inherit_masters = true;
    std::vector<std::string> command;
};

/// Arguments of `redlock status`.
struct status_arguments
{
    resource_arguments common;
    bool json = false;
};

/// Arguments of `redlock doctor`.
struct doctor_arguments
{
    master_arguments servers;
    std::string prefix;
    bool probe = true;
    bool guarded = false;
    bool json = false;
};

/// Arguments of `redlock provision`.
struct provision_arguments
{
    master_arguments servers;
    std::string prefix;
    provision_options options;
    std::string group; // The name of the group to arm again.
    bool json = false;
};

/// The command line has been handled completely (help, version, an error): the exit code.
struct answered
{
    int exit_code;
};

/// The result of the command line.
using request =
    std::variant<answered, run_arguments, status_arguments, doctor_arguments, provision_arguments>;

/// Parses the command line and the environment. Reports errors on stderr.
request read_arguments(int count, const char* const* words);

} // namespace redlock::cli
