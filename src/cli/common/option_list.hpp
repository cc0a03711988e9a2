// SPDX-License-Identifier: BSL-1.0
// The options of each command, as CLI11 parses them and as the help shows them.
#pragma once

#include "cli/common/arguments.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli
{

/// The options as given, before their values are parsed.
struct raw_arguments
{
    resource_arguments common;
    std::optional<std::string> connect_timeout;
    std::string ttl = "10s";
    std::string max_hold;
    std::string wait = "10s";
    std::optional<std::string> grace;
    bool no_inherit_masters = false;
    bool try_once = false;
    bool verbose = false;
    bool guarded = false;
    bool json = false;
    bool no_probe = false;
    std::string max_ttl;
    std::string policy = "clocks";
    bool fresh = false;
    bool change = false;
    bool takeover = false;
    std::vector<std::string> leaving;
    std::vector<std::string> stopped;
    bool arm = false;
    std::string group;
    std::vector<std::string> retired;
};

// Each of these functions adds a subcommand, whose options are written to `raw`.

CLI::App& add_run(CLI::App& app, raw_arguments& raw);
CLI::App& add_status(CLI::App& app, raw_arguments& raw);
CLI::App& add_doctor(CLI::App& app, raw_arguments& raw);
CLI::App& add_provision(CLI::App& app, raw_arguments& raw);

} // namespace redlock::cli
