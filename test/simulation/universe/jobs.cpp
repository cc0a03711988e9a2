// SPDX-License-Identifier: BSL-1.0
// Many seeds in several processes at once.
#include "jobs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
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
    pid_t id;
    int reads;
};

/// The result of a job as one line: totals, or a violation.
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
             << all.simulated.count() << ' ' << all.hash;
    }
    return line.str();
}

void add(totals& all, std::istringstream& line)
{
    totals some;
    clock::rep simulated = 0;
    line >> some.seeds >> some.leases >> some.faults >> some.doubles >> simulated >> some.hash;
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
    int ends[2];
    if (::pipe(ends) != 0)
    {
        throw std::runtime_error{"no pipe for a job"};
    }
    const pid_t id = ::fork();
    if (id < 0)
    {
        throw std::runtime_error{"no process for a job"};
    }
    if (id == 0)
    {
        totals all;
        const auto found = run_seeds(first, last, step, all);
        const std::string line = told(found, all);
        const bool written = ::write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
        ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    return {id, ends[0]};
}

std::string read_all(int from)
{
    std::string text;
    char some[512];
    for (ssize_t bytes = 0; (bytes = ::read(from, some, sizeof some)) > 0;)
    {
        text.append(some, static_cast<std::size_t>(bytes));
    }
    ::close(from);
    return text;
}

} // namespace

std::optional<found_violation>
run_in_jobs(std::uint64_t first, std::uint64_t last, std::size_t jobs, totals& all)
{
    std::fflush(stdout);
    std::vector<job> running;
    for (std::size_t each = 0; each < jobs && first + each <= last; ++each)
    {
        running.push_back(start(first + each, last, jobs));
    }
    std::optional<found_violation> found;
    bool crashed = false;
    while (!running.empty())
    {
        int status = 0;
        const pid_t ended = ::wait(&status);
        const auto which = std::find_if(
            running.begin(), running.end(), [ended](const job& each) { return each.id == ended; });
        if (which == running.end())
        {
            continue;
        }
        std::istringstream line{read_all(which->reads)};
        running.erase(which);
        std::string kind;
        line >> kind;
        const bool stops_all = kind != "fine" && !found && !crashed;
        if (kind == "fine")
        {
            add(all, line);
        }
        else if (stops_all && kind == "violation")
        {
            found = read_violation(line);
        }
        else if (stops_all)
        {
            crashed = true;
        }
        for (const job& each : running)
        {
            if (stops_all)
            {
                ::kill(each.id, SIGKILL);
            }
        }
    }
    if (crashed)
    {
        throw std::runtime_error{"a job crashed"};
    }
    return found;
}

} // namespace redlock::test
