// SPDX-License-Identifier: BSL-1.0
// Inspects a resource on all masters, and writes the answers as text or JSON.
#include "cli/status/status.hpp"

#include "cli/common/exit_code.hpp"
#include "cli/common/inspected_key.hpp"
#include "cli/common/json.hpp"
#include "cli/common/leave.hpp"
#include "cli/common/manager_config.hpp"
#include "cli/common/message.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::cli
{

namespace
{

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;

/// Returns how long at least a quorum has this owner's key, by the masters' own clocks: the quorum-th longest time.
/// Empty if the keys don't expire.
std::optional<milliseconds> held_for(const inspection& found, std::string_view owner)
{
    std::vector<milliseconds> times;
    for (const master_inspection& each : found.masters())
    {
        if (each.has_key && each.owner_id.view() == owner)
        {
            times.push_back(each.expires_in.value_or(milliseconds::max()));
        }
    }
    std::sort(times.begin(), times.end(), std::greater{});
    const milliseconds least = times.at(found.quorum() - 1);
    return least == milliseconds::max() ? std::nullopt : std::optional{least};
}

std::string text_of(const master_inspection& master)
{
    if (master.reason)
    {
        const std::string_view detail = master.detail.view();
        return fmt::format(
            "no answer: {}{}", in_plain_words(master.reason),
            detail.empty() ? std::string{} : fmt::format(" (\"{}\")", detail));
    }
    if (!master.has_key)
    {
        return "free";
    }
    return fmt::format(
        "{}, {}", key_in_words(master),
        master.expires_in ? "for another " + time_left(*master.expires_in) : std::string{"without expiry"});
}

std::string verdict(const inspection& found, std::string_view resource)
{
    const std::string name = in_quotes(resource);
    const std::size_t all = found.masters().size();
    if (found.answered() < found.quorum())
    {
        return fmt::format(
            "{}: unknown, since only {} of {} masters answered (quorum {})", name, found.answered(), all,
            found.quorum());
    }
    const std::string_view owner = found.holder();
    if (owner.empty())
    {
        const bool blocked = all - found.taken() < found.quorum();
        return fmt::format(
            "{} isn't held{}: no owner has it on a quorum ({} of {} masters); {} answered", name,
            blocked ? fmt::format(", and can't be locked while {} masters have a key for it", found.taken())
                    : "",
            found.quorum(), all, found.answered());
    }
    const auto least = held_for(found, owner);
    return fmt::format(
        "{} is held by {} on {} of {} masters (quorum {}), {}", name, owner, found.count(owner), all,
        found.quorum(), least ? "for at least another " + time_left(*least) : std::string{"without expiry"});
}

void write_text(const inspection& found, std::string_view resource)
{
    for (std::size_t index = 0; index < found.masters().size(); ++index)
    {
        fmt::print("{}  {}\n", found.name(index), text_of(found.masters()[index]));
    }
    fmt::print("{}\n", verdict(found, resource));
}

json::value json_or_null(const std::optional<milliseconds>& value)
{
    return value ? json::value(value->count()) : nullptr;
}

json::object json_of(const inspection& found, std::size_t index)
{
    const master_inspection& master = found.masters()[index];
    return {
        {"master", json_string(found.name(index))},
        {"answered", !master.reason},
        {"has_key", master.has_key},
        {"owner_id", json_string_or_null(master.owner_id.view())},
        {"expires_in_ms", json_or_null(master.expires_in)},
        {"error", master.reason ? json_string(in_plain_words(master.reason)) : nullptr},
        {"detail", json_string_or_null(master.detail.view())}};
}

void write_json(const inspection& found, std::string_view resource)
{
    const std::string_view owner = found.holder();
    json::array masters;
    for (std::size_t index = 0; index < found.masters().size(); ++index)
    {
        masters.push_back(json_of(found, index));
    }
    const json::object all{
        {"resource", json_string(resource)},
        {"held", found.answered() < found.quorum() ? nullptr : json::value(!owner.empty())},
        {"owner_id", json_string_or_null(owner)},
        {"held_on", owner.empty() ? 0 : found.count(owner)},
        {"held_for_ms", json_or_null(owner.empty() ? std::nullopt : held_for(found, owner))},
        {"answered", found.answered()},
        {"quorum", found.quorum()},
        {"masters", std::move(masters)}};
    fmt::print("{}\n", json::serialize(all));
}

exit_code code_of(const inspection& found)
{
    if (found.answered() < found.quorum())
    {
        const auto is_refused = [](const master_inspection& each)
        { return is_refused_by_system(each.reason); };
        const bool refused = std::any_of(found.masters().begin(), found.masters().end(), is_refused);
        return refused ? exit_code::system_error : exit_code::no_quorum;
    }
    return found.holder().empty() ? exit_code::not_held : exit_code::success;
}

} // namespace

void status(const status_arguments& asked)
{
    // leave_with_output() detects a closed pipe, like a full disk.
    std::signal(SIGPIPE, SIG_IGN);
    asio::io_context io{1};
    lock_manager locks{io, manager_config(asked.common)};
    error_code error;
    inspection found;
    locks.async_inspect(
        asked.common.resource,
        [&](error_code result, inspection answers)
        {
            error = result;
            found = std::move(answers);
            io.stop();
        });
    io.run();
    if (error && error != errc::no_quorum)
    {
        say(error == errc::invalid_resource ? error.message() : in_plain_words(error));
        leave({number_of(exit_code_of(error)), 0});
    }
    asked.json ? write_json(found, asked.common.resource) : write_text(found, asked.common.resource);
    leave_with_output(code_of(found));
}

} // namespace redlock::cli
