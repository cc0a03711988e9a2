// SPDX-License-Identifier: BSL-1.0
// What was measured, as a table for a person and as JSON.
#include "output/results.hpp"

#include <cmath>
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

std::string json_string(const std::string& text)
{
    std::string out = "\"";
    for (const char byte : text)
    {
        if (byte == '"' || byte == '\\')
        {
            out += '\\';
            out += byte;
        }
        else if (static_cast<unsigned char>(byte) < 0x20)
        {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
        }
        else
        {
            out += byte;
        }
    }
    return out + '"';
}

/// JSON has no word for what isn't finite.
std::string number(std::optional<double> value)
{
    return value && std::isfinite(*value) ? fmt::format("{}", *value) : std::string{"null"};
}

std::string json_of(const figure& one)
{
    std::string out = fmt::format(
        R"({{"name": {}, "unit": {}, "reference": {}, "measured": {})", json_string(one.name),
        json_string(one.unit), number(one.reference), number(one.measured));
    if (one.ratio)
    {
        out += fmt::format(
            R"(, "ratio": {{"median": {}, "least": {}, "most": {}}})", number(one.ratio->median),
            number(one.ratio->min), number(one.ratio->max));
    }
    if (one.goal)
    {
        out += fmt::format(R"(, "goal": {}, "met": {})", *one.goal, one.met());
    }
    if (!one.samples.empty())
    {
        out += fmt::format(R"(, "samples": [{}])", fmt::join(one.samples, ", "));
    }
    return out + '}';
}

std::string json_of(const plot& one)
{
    std::string out = fmt::format(
        R"({{"name": {}, "title": {}, "x": {}, "y": {}, "logarithmic_x": {}, "logarithmic_y": {}, "lines": [)",
        json_string(one.name), json_string(one.title), json_string(one.x), json_string(one.y),
        one.logarithmic_x, one.logarithmic_y);
    const char* before_line = "";
    for (const series& line : one.lines)
    {
        out += fmt::format(R"({}{{"name": {}, "points": [)", before_line, json_string(line.name));
        before_line = ", ";
        const char* before = "";
        for (const auto& [x, y] : line.points)
        {
            out += fmt::format("{}[{}, {}]", before, number(x), number(y));
            before = ", ";
        }
        out += "]}";
    }
    return out + "]}";
}

} // namespace

std::vector<std::string> notes_on(const results& measured)
{
    std::vector<std::string> notes;
    if (measured.settings.quick)
    {
        notes.emplace_back("This was a quick run, for a first look: fewer rounds and pairs, shorter trials. "
                           "Its figures scatter more.");
    }
    notes.emplace_back(
        "A ratio is what was measured in a round, divided by the reference in the round beside it.");
    notes.push_back(fmt::format(
        "It is the median over {} rounds of each kind by turns, {} pairs each; beside it the extremes.",
        measured.settings.rounds, measured.settings.pairs));
    notes.emplace_back("Where all share one CPU, a master that is out of order leaves its part to the "
                       "others: a ratio may be below 1.");
    return notes;
}

void write_table(std::ostream& out, const results& measured)
{
    for (const figure_group& group : measured.groups)
    {
        fmt::print(
            out, "\n{}\n{:<52}{:>11}{:>11}   {:<22}{}\n", group.title, "", group.reference, group.measured,
            "ratio (least - most)", "goal");
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
        "{} master(s) ({}), client and masters on CPU {} of {} where it is one ({})\n{}, {}, Boost {}, load "
        "{:.2f} before, {}\n",
        measured.settings.masters, machine.server, machine.cpu, machine.cores, machine.processor,
        machine.kernel, machine.compiler, machine.boost, machine.load, measured.began);
}

void write_json(std::ostream& out, const results& measured)
{
    const machine_info& machine = measured.machine;
    const options& settings = measured.settings;
    fmt::print(
        out,
        "{{\n  \"machine\": {{\"processor\": {}, \"cores\": {}, \"kernel\": {}, \"compiler\": {}, \"boost\": "
        "{}, ",
        json_string(machine.processor), machine.cores, json_string(machine.kernel),
        json_string(machine.compiler), json_string(machine.boost));
    fmt::print(
        out, "\"server\": {}, \"cpu\": {}, \"load\": {}}},\n", json_string(machine.server), machine.cpu,
        machine.load);
    fmt::print(
        out, "  \"settings\": {{\"quick\": {}, \"masters\": {}, \"rounds\": {}, \"pairs\": {}, ",
        settings.quick, settings.masters, settings.rounds, settings.pairs);
    fmt::print(
        out,
        "\"kept\": [{}], \"keep_for_ms\": {}, \"trial_s\": {}, \"trial_hung_runs\": {}, \"trial_races\": "
        "{}}},\n",
        fmt::join(settings.kept, ", "), settings.keep_for.count(), settings.trials.rolling.count(),
        settings.trials.hung_runs, settings.trials.races);
    fmt::print(out, "  \"began\": {},\n  \"groups\": [", json_string(measured.began));
    const char* before_group = "\n";
    for (const figure_group& group : measured.groups)
    {
        fmt::print(
            out, "{}    {{\"title\": {}, \"reference\": {}, \"measured\": {}, \"notes\": [", before_group,
            json_string(group.title), json_string(group.reference), json_string(group.measured));
        before_group = ",\n";
        const char* before = "";
        for (const std::string& note : group.notes)
        {
            fmt::print(out, "{}{}", before, json_string(note));
            before = ", ";
        }
        fmt::print(out, "],\n     \"figures\": [");
        before = "\n";
        for (const figure& one : group.figures)
        {
            fmt::print(out, "{}      {}", before, json_of(one));
            before = ",\n";
        }
        fmt::print(out, "],\n     \"plots\": [");
        before = "\n";
        for (const plot& one : group.plots)
        {
            fmt::print(out, "{}      {}", before, json_of(one));
            before = ",\n";
        }
        fmt::print(out, "]}}");
    }
    fmt::print(out, "]\n}}\n");
}

} // namespace redlock::bench
