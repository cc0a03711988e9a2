// SPDX-License-Identifier: BSL-1.0
// Runs the doctor, and reads its output.
#include "command/diagnosed.hpp"

#include <boost/property_tree/json_parser.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

namespace redlock::test
{

std::string program_with_disk(const std::string& server, std::chrono::milliseconds each_write)
{
    // Kept until this process ends, since servers are restarted by the same path.
    static std::deque<temporary_directory> directories;
    const std::string path = directories.emplace_back().path() + "/server-with-a-disk";
    std::ofstream{path} << fmt::format(
        "#!/bin/sh\nLD_PRELOAD={} SLOW_DISK_MS={} exec {} \"$@\"\n", SLOW_DISK_PRELOAD, each_write.count(),
        program_of(server));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

server_options durable(strings more, const std::string& server)
{
    server_options options;
    options.program = program_with_disk(server, std::chrono::milliseconds{0});
    options.settings = {"--appendonly", "yes", "--appendfsync", "always"};
    options.settings.insert(options.settings.end(), more.begin(), more.end());
    return options;
}

diagnosed diagnose(const strings& urls, const strings& options, slow_part wanted)
{
    strings words{"doctor"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& url : urls)
    {
        words.insert(words.end(), {"--master", url});
    }
    const auto limit = std::chrono::steady_clock::now() + patience;
    for (;;)
    {
        const command_run asked{words};
        const process_end end = asked.wait();
        diagnosed found{end, asked.output(), asked.errors()};
        const bool slow_network = found.text.find("its median round trip is") != std::string::npos;
        const bool slow_disk = found.text.find("its slowest answer to a command") != std::string::npos;
        const bool unwanted =
            (slow_network && wanted != slow_part::network) || (slow_disk && wanted == slow_part::nothing);
        if (!unwanted || std::chrono::steady_clock::now() > limit)
        {
            return found;
        }
    }
}

strings urls_of(const std::vector<server>& servers)
{
    strings urls;
    std::transform(
        servers.begin(), servers.end(), std::back_inserter(urls),
        [](const server& each) { return each.url(); });
    return urls;
}

tree read_json(const std::string& text)
{
    std::istringstream in{text};
    tree read;
    boost::property_tree::read_json(in, read);
    return read;
}

tree json_of(const strings& urls, const strings& options)
{
    strings with_json{"--json"};
    with_json.insert(with_json.end(), options.begin(), options.end());
    return read_json(diagnose(urls, with_json).text);
}

std::set<std::string> keys_of(const tree& object)
{
    std::set<std::string> keys;
    for (const auto& [key, value] : object)
    {
        keys.insert(key);
    }
    return keys;
}

const tree& master_at(const tree& all, std::size_t index)
{
    return std::next(all.get_child("masters").begin(), static_cast<std::ptrdiff_t>(index))->second;
}

namespace
{

std::string findings_but(const tree& master, std::string_view omitted)
{
    std::string found;
    for (const auto& [key, each] : master.get_child("findings"))
    {
        const std::string kind = each.get<std::string>("kind");
        if (kind != omitted)
        {
            found += (found.empty() ? "" : ", ") + each.get<std::string>("level") + " " + kind;
        }
    }
    return found;
}

} // namespace

std::string findings_of(const tree& master)
{
    return findings_but(master, "no_password");
}

std::string all_findings_of(const tree& master)
{
    return findings_but(master, {});
}

std::string what_of(const tree& master, const std::string& kind)
{
    for (const auto& [key, each] : master.get_child("findings"))
    {
        if (each.get<std::string>("kind") == kind)
        {
            return each.get<std::string>("what");
        }
    }
    return {};
}

std::string verdict_in(const diagnosed& json)
{
    const tree all = read_json(json.text);
    const tree& first = master_at(all, 0);
    return first.get<std::string>("verdict") + ": " + findings_of(first);
}

std::string alone(const std::string& url, const strings& options, slow_part wanted)
{
    strings with_json{"--json"};
    with_json.insert(with_json.end(), options.begin(), options.end());
    return verdict_in(diagnose({url}, with_json, wanted));
}

} // namespace redlock::test
