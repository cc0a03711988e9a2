// SPDX-License-Identifier: BSL-1.0
// Shared parts of the tests of redlock doctor: its runs, its output as text and JSON, and masters without findings.
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

/// Returns a server program whose writes to the disk take this long, on any disk.
std::string program_with_disk(const std::string& server, std::chrono::milliseconds each_write);

/// Returns options of a master that keeps every lock over a restart, on a fast disk; with more settings.
server_options durable(strings more = {}, const std::string& server = "redis-server");

/// The end and the output of a run of the doctor.
struct diagnosed
{
    process_end end;
    std::string text;
    std::string errors;
};

/// The slowness that a test looks for. Any other may be that of a busy machine.
enum class slow_part
{
    nothing,
    disk,    ///< the answers to the commands of a lock
    network, ///< all round trips
};

/// Runs the doctor on these masters; again, for a minute at most, if it reports an unwanted slowness.
diagnosed diagnose(const strings& urls, const strings& options = {}, slow_part wanted = slow_part::nothing);

strings urls_of(const std::vector<server>& servers);

/// Parses one JSON value. Throws if the text is anything else.
tree read_json(const std::string& text);
/// Returns the output of doctor --json on these masters.
tree json_of(const strings& urls, const strings& options = {});
std::set<std::string> keys_of(const tree& object);
const tree& master_at(const tree& all, std::size_t index);

/// Returns "warning eviction, note forgets". Omits no_password, which nearly all servers of the tests have.
std::string findings_of(const tree& master);
/// Returns the same, with no_password.
std::string all_findings_of(const tree& master);
/// Returns the `what` of the first finding of a kind; empty without one.
std::string what_of(const tree& master, const std::string& kind);
/// Returns the verdict and the findings of the first master in the output of doctor --json.
std::string verdict_in(const diagnosed& json);
/// Returns the verdict and the findings of one master that is examined alone: "usable: warning eviction".
std::string alone(const std::string& url, const strings& options = {}, slow_part wanted = slow_part::nothing);

} // namespace redlock::test
