// SPDX-License-Identifier: BSL-1.0
// Runs seeds in several processes.
#include "search.hpp"

#include "support/child_process.hpp"

#include <poll.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlock::test
{

namespace
{

struct job
{
    child_process process;
    unique_fd result;
};

/// The result of a job as one line: its totals, or a violation.
std::string told(const std::optional<found_violation>& found, const totals& all)
{
    std::ostringstream line;
    if (found)
    {
        line << "violation " << found->seed << ' ' << found->what.check << '\t' << found->what.words;
    }
    else
    {
        line << "fine " << all.seeds << ' ' << all.leases << ' ' << all.faults << ' ' << all.doubles << ' '
             << all.simulated.count() << ' ' << all.rounds << ' ' << all.commands << ' ' << all.events << ' '
             << all.comparisons << ' ' << all.hash;
    }
    return line.str();
}

void add(totals& all, std::istringstream& line)
{
    totals some;
    clock::rep simulated = 0;
    line >> some.seeds >> some.leases >> some.faults >> some.doubles >> simulated >> some.rounds >>
        some.commands >> some.events >> some.comparisons >> some.hash;
    some.simulated = clock::duration{simulated};
    all.add(some);
}

found_violation read_violation(std::istringstream& line)
{
    found_violation found{};
    line >> found.seed;
    line.ignore();
    std::getline(line, found.what.check, '\t');
    std::getline(line, found.what.words);
    return found;
}

job start(std::uint64_t first, std::uint64_t last, std::size_t step)
{
    const auto run = [=]
    {
        totals all;
        const auto found = run_seeds(first, last, step, all);
        return told(found, all);
    };
    job started;
    started.process = child_process{run, started.result};
    return started;
}

/// Waits for the end of any of these jobs, and removes it.
std::string next_result(std::vector<job>& running)
{
    std::vector<pollfd> results;
    for (const job& each : running)
    {
        results.push_back({each.result.get(), POLLIN, 0});
    }
    while (::poll(results.data(), results.size(), -1) < 1)
    {
    }
    const auto ready =
        std::find_if(results.begin(), results.end(), [](const pollfd& each) { return each.revents != 0; });
    const auto ended = running.begin() + (ready - results.begin());
    std::string text = read_to_end(ended->result);
    running.erase(ended);
    return text;
}

} // namespace

std::optional<found_violation>
run_in_jobs(std::uint64_t first, std::uint64_t last, std::size_t jobs, totals& all)
{
    // Jobs that still run when this function returns or throws are killed.
    std::vector<job> running;
    for (std::size_t each = 0; each < jobs && first + each <= last; ++each)
    {
        running.push_back(start(first + each, last, jobs));
    }
    while (!running.empty())
    {
        std::istringstream line{next_result(running)};
        std::string kind;
        line >> kind;
        if (kind == "violation")
        {
            return read_violation(line);
        }
        if (kind != "fine")
        {
            throw std::runtime_error{"a job crashed"};
        }
        add(all, line);
    }
    return std::nullopt;
}

} // namespace redlock::test
