// SPDX-License-Identifier: BSL-1.0
// The command line of the bench, parsed with CLI11.
#include "command_line.hpp"

#include "sections/sections.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

namespace
{

constexpr const char* description =
    R"(Measures the latency and cost of acquiring and releasing locks, compared with reference clients in the same run:
raw (plain epoll, commands formatted once) and asio (the same on bare Boost.Asio). It starts its own masters.

Sections with client and masters on one CPU:
  latency     one client
  distance    one client, masters 1 ms away
  scaling     one client with 1, 3, 5 and 7 masters
  transports  unix sockets and TLS, compared with TCP
  guarded     one client in guarded mode, compared with plain mode
  faults      one client while some masters are hung, dead or slow
  memory      the heap of a client while some masters are hung
  peers       node-redlock, redis-semaphore, redis++, etcd and PostgreSQL, compared with redlock
Sections on all CPUs:
  throughput  1, 10, 100 and 1000 workers, each with its own resource
  contention  2, 10, 100 and 1000 clients that compete for one resource
  kept        the cost of leases with automatic extension
  trials      leases with automatic extension while masters are killed or hang
)";

/// Returns the defaults of a quick run.
options quick_options()
{
    options quick;
    quick.rounds = 5;
    quick.pairs = 500;
    quick.kept = {100'000};
    quick.keep_for = std::chrono::seconds{12};
    quick.trials = {std::chrono::seconds{10}, 3, 5000};
    quick.contend_for = std::chrono::milliseconds{300};
    return quick;
}

std::vector<std::string> section_names()
{
    std::vector<std::string> names;
    for (const section& each : sections)
    {
        names.emplace_back(each.name);
    }
    return names;
}

void add_options(CLI::App& app, options& settings)
{
    app.add_flag(
        "--quick", settings.quick,
        "A first look in 2 to 3 minutes: fewer rounds and pairs, 100000 kept leases only,\nshort trials. "
        "Options given in addition take precedence");
    app.add_option("--only", settings.only, "Run this section only; may be repeated")
        ->type_name("SECTION")
        ->default_str("")
        ->check(CLI::IsMember(section_names()).description(""))
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_flag(
        "--peers", settings.peers,
        "Run the section peers as well. bench/run installs them, except redis++, which is\nincluded if CMake "
        "finds it. Missing peers are left out, with a note");
    app.add_option("--masters", settings.masters, "Number of masters")->check(CLI::Range(1, 31));
    app.add_option("--rounds", settings.rounds, "Rounds of each client")->check(CLI::Range(5, 1000));
    app.add_option("--pairs", settings.pairs, "Acquire and release pairs per round")
        ->check(CLI::Range(100, 1'000'000));
    app.add_option_function<std::size_t>(
           "--kept", [&settings](std::size_t count) { settings.kept = {count}; },
           "Number of kept leases, instead of 1000, 10000 and 100000")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option_function<std::size_t>(
           "--keep-for",
           [&settings](std::size_t seconds) { settings.keep_for = std::chrono::seconds{seconds}; },
           fmt::format("Seconds for which they are kept [{}]", settings.keep_for / std::chrono::seconds{1}))
        ->check(CLI::Range(12, 86'400));
    app.add_option("--server", settings.server, "Server program: redis-server, valkey-server or a path");
    app.add_option("--cpu", settings.cpu, "The one CPU to run on, by default the last")
        ->check(CLI::Range(0, 1023));
    app.add_option(
           "--results", settings.results,
           "Where results.json, index.html and the pictures are written; the pictures need gnuplot")
        ->type_name("DIRECTORY");
    app.add_option("--compare", settings.base, "Print the changes since this results.json of an earlier run")
        ->type_name("FILE")
        ->check(CLI::ExistingFile.description(""));
}

} // namespace

std::optional<options> parse_command_line(int count, const char* const* words)
{
    // Determined first, because --quick changes the defaults of the other options.
    const bool quick =
        std::any_of(words, words + count, [](std::string_view each) { return each == "--quick"; });
    options settings = quick ? quick_options() : options{};
    CLI::App app{description, "redlock_bench"};
    app.footer("A goal that is not met is reported and does not fail the run.");
    // The last occurrence counts, so that a user can override what a script passes.
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_options(app, settings);
    try
    {
        app.parse(count, words);
    }
    catch (const CLI::Success& help)
    {
        app.exit(help);
        return std::nullopt;
    }
    catch (const CLI::ParseError& error)
    {
        throw std::invalid_argument{fmt::format("{}; see --help", error.what())};
    }
    for (const section& each : sections)
    {
        const bool selected = std::ranges::find(settings.only, each.name) != settings.only.end();
        if (selected && settings.masters < each.min_masters)
        {
            throw std::invalid_argument{
                fmt::format("--only {} needs at least {} masters", each.name, each.min_masters)};
        }
    }
    return settings;
}

} // namespace redlock::bench
