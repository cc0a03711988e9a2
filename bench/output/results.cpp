// SPDX-License-Identifier: BSL-1.0
// The results of a run, printed as a table.
#include "output/results.hpp"

#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

namespace redlock::bench
{

namespace
{

std::string cell(std::optional<double> value)
{
    return value ? fmt::format("{:.2f}", *value) : std::string{"-"};
}

} // namespace

std::vector<std::string> notes_on(const results& measured)
{
    std::vector<std::string> notes;
    if (measured.settings.quick)
    {
        notes.emplace_back("This was a quick run: fewer rounds and pairs, shorter trials. Its figures vary "
                           "more.");
    }
    notes.emplace_back("A ratio is the value measured in a round, divided by that of the reference in "
                       "the same round.");
    notes.push_back(fmt::format(
        "The table shows the median over {} rounds of {} pairs, with minimum and maximum. "
        "The clients alternate.",
        measured.settings.rounds, measured.settings.pairs));
    notes.emplace_back("In the sections on one CPU, a master that is hung or dead leaves its CPU time to "
                       "the others, so a ratio may be below 1.");
    return notes;
}

void write_table(std::ostream& out, const results& measured)
{
    for (const figure_group& group : measured.groups)
    {
        fmt::print(
            out, "\n{}\n{:<52}{:>11}{:>11}   {:<22}{}\n", group.title, "", group.reference, group.measured,
            "ratio (min - max)", "goal");
        for (const figure& one : group.figures)
        {
            const std::string ratio =
                one.ratio ? fmt::format(
                                "{:.2f} ({:.2f} - {:.2f})", one.ratio->median, one.ratio->min, one.ratio->max)
                          : std::string{};
            const std::string goal =
                one.goal ? fmt::format("{} at most {:.2f}", one.met() ? "met:    " : "NOT MET:", *one.goal)
                         : std::string{};
            const std::string line = fmt::format(
                "  {:<50}{:>11}{:>11}   {:<22}{}", one.label(), cell(one.reference), cell(one.measured),
                ratio, goal);
            fmt::print(out, "{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
            for (std::size_t at = 0; at < one.samples.size(); ++at)
            {
                constexpr std::size_t in_a_line = 10;
                const bool last = at + 1 == one.samples.size() || (at + 1) % in_a_line == 0;
                fmt::print(out, "{:>9.2f}{}", one.samples[at], last ? "\n" : "");
            }
        }
        for (const std::string& note : group.notes)
        {
            fmt::print(out, "  {}\n", note);
        }
    }
    fmt::print(out, "\n{}\n", fmt::join(notes_on(measured), "\n"));
    const machine_info& machine = measured.machine;
    fmt::print(
        out,
        "{} master(s) ({}), sections on one CPU used CPU {} of {} ({})\n{}, {}, Boost {}, load "
        "before {:.2f}, {}\n",
        measured.settings.masters, machine.server, machine.cpu, machine.cores, machine.processor,
        machine.kernel, machine.compiler, machine.boost, machine.load, measured.began);
}

} // namespace redlock::bench
