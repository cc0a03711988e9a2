// SPDX-License-Identifier: BSL-1.0
// What the bench is asked for on its command line.
#include "command_line.hpp"

#include "sections/sections.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::bench
{

const std::string_view usage =
    R"(usage: redlock_bench [option...]

Measures how long it takes one client to acquire a lock, next to the least that a client can do (raw: plain epoll,
commands formatted once; asio: the same on bare Boost.Asio), on masters that it starts itself. Client and masters run on
one CPU. The same with masters that are a millisecond away, with 1, 3, 5 and 7 of them, over unix sockets and TLS, with
some that are out of order, and what memory that takes.
Then, on all CPUs, how many pairs a second there are with 1, 10, 100 and 1000 workers at the same time; with 2, 10 and 100
clients that want the same resource, how soon and how evenly it goes round; what leases cost that are kept, and what they
go through: masters that are killed and hang, by turns.

  --quick          a first look in two to three minutes: 5 rounds of 500 pairs, 100000 kept leases for 12 s, short
                   trials and contests; what is asked for beside it counts
  --only SECTION   latency, distance, scaling, transports, faults, memory, peers, throughput, contention, kept or
                   trials, and not the others; may be given again
  --peers          the section peers as well, which only comes when it is asked for: redlock beside node-redlock,
                   redis-semaphore and redis++ on the same masters, etcd and PostgreSQL. bench/run installs what they
                   need, but not redis++, which takes part where CMake finds it; what isn't there is left out and said
  --masters N      how many masters, 1 to 31 (5)
  --rounds N       how many rounds of each client, by turns, 5 to 1000 (7)
  --pairs N        how many pairs of acquire and release in a round, 100 to 1000000 (2000)
  --kept N         how many leases are kept, 1 to 1000000 (1000, 10000 and 100000, one after the other)
  --keep-for N     for how many seconds, 12 to 86400 (22)
  --server NAME    what the masters are: redis-server, valkey-server or a path (redis-server)
  --cpu N          the CPU that is used (the last)
  --results DIRECTORY
                   where the results are written: results.json, index.html to look at, and the pictures in it, which
                   gnuplot draws (build/bench/results)
  --compare FILE   shows what has changed since an earlier run, whose results.json this is
  --help           prints this

A goal that isn't met is shown and doesn't fail the run.
)";

namespace
{

std::size_t number(std::string_view option, std::string_view text, std::size_t least, std::size_t most)
{
    std::size_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    {
        throw std::invalid_argument{
            fmt::format("{} can't be '{}': it must be a number from {} to {}", option, text, least, most)};
    }
    return value;
}

/// What is measured unless something else is asked for.
options defaults(bool quick)
{
    options asked;
    if (quick)
    {
        asked.quick = true;
        asked.rounds = 5;
        asked.pairs = 500;
        asked.kept = {100'000};
        asked.keep_for = std::chrono::seconds{12};
        asked.trials = {std::chrono::seconds{10}, 3, 5000};
        asked.contend_for = std::chrono::milliseconds{600};
    }
    return asked;
}

std::string path(std::string_view option, std::string_view what, std::string_view text)
{
    if (text.empty())
    {
        throw std::invalid_argument{
            fmt::format("{} can't be empty: it must be the name of a {}", option, what)};
    }
    return std::string{text};
}

} // namespace

options parse(std::span<const char* const> arguments)
{
    const auto is_quick = [](std::string_view each) { return each == "--quick"; };
    options asked = defaults(std::any_of(arguments.begin(), arguments.end(), is_quick));
    for (std::size_t at = 0; at < arguments.size(); ++at)
    {
        const std::string_view option = arguments[at];
        const auto value = [&]() -> std::string_view
        {
            if (at + 1 == arguments.size())
            {
                throw std::invalid_argument{fmt::format("{} needs a value behind it", option)};
            }
            return arguments[++at];
        };
        if (is_quick(option))
        {
            continue; // Counted already, so that it doesn't matter where it stands.
        }
        if (option == "--only")
        {
            const std::string_view name = value();
            if (std::ranges::find(sections, name, &section::name) == sections.end())
            {
                const auto names = sections | std::views::transform(&section::name);
                throw std::invalid_argument{
                    fmt::format("--only can't be '{}': it must be {}", name, fmt::join(names, ", "))};
            }
            asked.only.emplace_back(name);
        }
        else if (option == "--peers")
        {
            asked.peers = true;
        }
        else if (option == "--masters")
        {
            asked.masters = number(option, value(), 1, 31);
        }
        else if (option == "--rounds")
        {
            asked.rounds = number(option, value(), 5, 1000);
        }
        else if (option == "--pairs")
        {
            asked.pairs = number(option, value(), 100, 1'000'000);
        }
        else if (option == "--kept")
        {
            asked.kept = {number(option, value(), 1, 1'000'000)};
        }
        else if (option == "--keep-for")
        {
            asked.keep_for = std::chrono::seconds{number(option, value(), 12, 86'400)};
        }
        else if (option == "--server")
        {
            asked.server = value();
        }
        else if (option == "--cpu")
        {
            asked.cpu = static_cast<int>(number(option, value(), 0, 1023));
        }
        else if (option == "--results")
        {
            asked.results = path(option, "directory", value());
        }
        else if (option == "--compare")
        {
            asked.base = path(option, "results.json of an earlier run", value());
        }
        else if (option == "--help" || option == "-h")
        {
            asked.help = true;
        }
        else
        {
            throw std::invalid_argument{
                fmt::format("there is no option '{}'; --help shows those there are", option)};
        }
    }
    return asked;
}

} // namespace redlock::bench
