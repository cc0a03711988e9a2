// SPDX-License-Identifier: BSL-1.0
// What the tests of redlock doctor share: its runs, what it said as text and as JSON, and masters without a fault.
#pragma once

#include "command/command.hpp"

#include <boost/property_tree/ptree.hpp>

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace redlock::test
{

using tree = boost::property_tree::ptree;

/// A server whose writes to the disk take this long, whatever the disk.
std::string program_with_disk(const std::string& server, std::chrono::milliseconds each_write);

/// A master that keeps every lock over a restart, on a disk that is never slow; with more settings.
server_options durable(strings more = {}, const std::string& server = "redis-server");

/// What a diagnosis ended with and said.
struct diagnosed
{
    process_end end;
    std::string text;
    std::string errors;
};

/// Runs the doctor on these masters.
diagnosed diagnose(const strings& urls, const strings& options = {});

strings urls_of(const std::vector<server>& servers);

/// Throws unless it is one JSON value.
tree read_json(const std::string& text);
/// What doctor --json says of these masters.
tree json_of(const strings& urls, const strings& options = {});
std::set<std::string> keys_of(const tree& object);
const tree& master_at(const tree& all, std::size_t index);

/// "warning eviction, note forgets": but for no_password, which holds for nearly all servers of tests.
std::string findings_of(const tree& master);
/// What the first finding of a kind says it has seen; empty without one.
std::string what_of(const tree& master, const std::string& kind);
/// The verdict and the findings on the first master, of what doctor --json said.
std::string verdict_in(const diagnosed& json);
/// The verdict and the findings of one master that is examined alone: "usable: warning eviction".
std::string alone(const std::string& url, const strings& options = {});

} // namespace redlock::test
