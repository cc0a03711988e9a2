// SPDX-License-Identifier: BSL-1.0
// Starts masters, runs the sections, prints the results and writes them to files.
#include "command_line.hpp"
#include "harness/machine.hpp"
#include "harness/progress.hpp"
#include "output/comparison.hpp"
#include "output/results.hpp"
#include "sections/sections.hpp"

#include "support/server.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t masters_with_goals = 5; // The goals apply to this number of masters.

/// Returns name and version: "redis 7.0.15", "valkey 8.0.1".
std::string name_of(test::server& master)
{
    const std::string info = master.command({"INFO", "server"}).text;
    for (const std::string_view name : {"valkey", "redis"})
    {
        const std::string field = fmt::format("\r\n{}_version:", name);
        if (const std::size_t at = info.find(field); at != std::string::npos)
        {
            const std::size_t version = at + field.size();
            return fmt::format("{} {}", name, info.substr(version, info.find('\r', version) - version));
        }
    }
    return "unknown";
}

void remove_goals(results& measured)
{
    for (figure_group& group : measured.groups)
    {
        for (figure& one : group.figures)
        {
            one.goal.reset();
        }
    }
}

bool is_selected(const section& one, const options& settings)
{
    const bool named = std::find(settings.only.begin(), settings.only.end(), one.name) != settings.only.end();
    const bool among_all = one.measure == measure_peers ? settings.peers : settings.only.empty();
    return (named || among_all) && settings.masters >= one.min_masters;
}

/// Adds the figures of one section. Throws with its name if it fails.
void measure_section(
    const section& one, std::span<test::server> masters, const options& settings, progress& status,
    results& out)
{
    try
    {
        figure_group group = one.measure(masters, settings, status);
        std::vector<figure_group> related = std::move(group.related);
        out.groups.push_back(std::move(group));
        std::move(related.begin(), related.end(), std::back_inserter(out.groups));
    }
    catch (const std::exception& failure)
    {
        throw std::runtime_error{fmt::format("section {} failed: {}", one.name, failure.what())};
    }
}

void measure_sections(cpus on, const options& settings, progress& status, results& out)
{
    std::vector<section> due;
    std::copy_if(
        sections.begin(), sections.end(), std::back_inserter(due),
        [&](const section& each) { return each.runs_on == on && is_selected(each, settings); });
    if (due.empty())
    {
        return;
    }
    status.show(fmt::format("starting {} masters", settings.masters));
    std::vector<test::server> masters = test::start_servers(settings.masters, {.program = settings.server});
    out.machine.server = name_of(masters.front());
    for (const section& each : due)
    {
        measure_section(each, masters, settings, status, out);
    }
}

/// Returns false if a section failed after others have succeeded. That is reported, and the sections after it don't run,
/// because it may have left masters stopped.
bool measure(const options& settings, results& out)
{
    progress status;
    try
    {
        {
            const cpu_pinning confined{settings.cpu};
            out.machine.cpu = confined.number();
            measure_sections(cpus::one, settings, status, out);
        }
        measure_sections(cpus::all, settings, status, out);
    }
    catch (const std::exception& failure)
    {
        if (out.groups.empty())
        {
            throw;
        }
        status.print_line(failure.what());
        return false;
    }
    return true;
}

/// Returns the exit code.
int run(const options& settings)
{
    // Unusable files are reported before the measurement. The base is read first because the results may replace it.
    std::optional<recorded_results> base;
    if (!settings.base.empty())
    {
        base = read_results(settings.base);
    }
    const std::filesystem::path directory = settings.results;
    create_results_directory(directory);
    results measured{
        describe_machine(),
        settings,
        {},
        fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))};
    const bool complete = measure(settings, measured);
    if (settings.masters != masters_with_goals)
    {
        remove_goals(measured);
    }
    // Before stdout, which may be a closed pipe.
    write_files(measured, directory);
    write_table(std::cout, measured);
    if (base)
    {
        write_comparison(std::cout, *base, measured);
    }
    std::cout << "\nThe results as a page: " << (directory / "index.html").string() << '\n';
    return complete ? 0 : 1;
}

} // namespace

} // namespace redlock::bench

int main(int count, char** values)
{
    try
    {
        if (const auto settings = redlock::bench::parse_command_line(count, values))
        {
            return redlock::bench::run(*settings);
        }
        return 0;
    }
    catch (const std::invalid_argument& wrong)
    {
        std::cerr << "bench: " << wrong.what() << '\n';
        return 64; // EX_USAGE
    }
    catch (const std::exception& failure)
    {
        std::cerr << "bench: " << failure.what() << '\n';
        return 1;
    }
}
