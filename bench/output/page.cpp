// SPDX-License-Identifier: BSL-1.0
// The results as an HTML page in one file.
#include "output/results.hpp"

#include <algorithm>
#include <optional>
#include <ostream>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

namespace redlock::bench
{

namespace
{

/// The style sheet of the page: responsive, with a dark mode and a print layout.
constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #626a73; --line: #dcdfe3; --paper: #fff; --good: #00694c;
    --bad: #b33c00; }
@media (prefers-color-scheme: dark) {
    :root { --ink: #dfe2e6; --quiet: #9aa2ab; --line: #363b42; --paper: #16181c; --good: #4cc9a0; --bad: #ff8f57; }
    /* The pictures are drawn for light paper: turned to dark, with the same hues. */
    figure svg { filter: invert(0.88) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 50rem; background: var(--paper); color: var(--ink);
    font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
    -webkit-text-size-adjust: 100%; overflow-wrap: break-word; }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; text-wrap: balance; }
h2 { margin: 3rem 0 0.75rem; font-size: 1.2rem; line-height: 1.3; font-weight: 650; text-wrap: balance; }
p { margin: 0.6rem 0; max-width: 42rem; }
.quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.9375rem; line-height: 1.4;
    font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: 0.4rem 0 0.4rem 1rem; vertical-align: baseline; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { color: var(--quiet); font-size: 0.8125rem; font-weight: 500; }
tbody th { font-weight: 400; }
th small, td small { display: block; color: var(--quiet); font-size: 0.8125rem; white-space: nowrap; }
.goal { text-align: left; }
.met { color: var(--good); }
.missed { color: var(--bad); font-weight: 650; }
.samples td { padding-top: 0; font-size: 0.8125rem; color: var(--quiet); text-align: left; }
.joined > * { border-bottom: 0; }
figure { margin: 1.5rem 0 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 30rem; height: auto; }
figure svg g { font-family: inherit; }
figure svg rect[fill="#ffffff"] { fill: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1.25rem; margin: 0.75rem 0; font-size: 0.9375rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
@media (max-width: 36rem) {
    body { padding: 1.5rem 1rem 3rem; }
    table { font-size: 0.8125rem; }
    th, td { padding-left: 0.6rem; }
    thead th, th small, td small, .samples td { font-size: 0.75rem; }
    dl { font-size: 0.875rem; }
}
@media print {
    :root { --ink: #000; --quiet: #444; --line: #bbb; --paper: #fff; --good: #000; --bad: #000; }
    @page { margin: 18mm; }
    html { font-size: 10pt; }
    body { padding: 0; max-width: none; }
    h2 { break-after: avoid; }
    tr, figure, dl { break-inside: avoid; }
    thead { display: table-header-group; }
    figure svg { min-width: 0; max-width: 150mm; filter: none; }
}
)";

std::string escaped(std::string_view text)
{
    std::string out{text};
    for (const auto& [plain, entity] :
         {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}})
    {
        boost::replace_all(out, plain, entity);
    }
    return out;
}

/// "23 of 25 goals are met."
std::string summary(const results& measured)
{
    std::size_t goals = 0;
    std::size_t met = 0;
    for (const figure_group& group : measured.groups)
    {
        for (const figure& one : group.figures)
        {
            goals += one.goal ? 1 : 0;
            met += one.goal && one.met() ? 1 : 0;
        }
    }
    if (goals == 0)
    {
        return {};
    }
    return fmt::format(
        "<p class=\"{}\">{} of {} goals are met.</p>\n", met == goals ? "met" : "missed", met, goals);
}

/// The columns of a group's table.
struct columns
{
    bool reference = false;
    bool ratio = false;
    bool goal = false;

    explicit columns(const figure_group& group)
    {
        for (const figure& one : group.figures)
        {
            reference = reference || one.reference;
            ratio = ratio || one.ratio;
            goal = goal || one.goal;
        }
    }

    int count() const { return 2 + (reference ? 1 : 0) + (ratio ? 1 : 0) + (goal ? 1 : 0); }
};

std::string number_cell(std::optional<double> value)
{
    return fmt::format("<td>{}</td>", value ? fmt::format("{:.2f}", *value) : std::string{});
}

std::string ratio_cell(const figure& one)
{
    return one.ratio ? fmt::format(
                           "<td>{:.2f}<small>{:.2f} – {:.2f}</small></td>", one.ratio->median, one.ratio->min,
                           one.ratio->max)
                     : std::string{"<td></td>"};
}

std::string goal_cell(const figure& one)
{
    if (!one.goal)
    {
        return "<td></td>";
    }
    return fmt::format(
        "<td class=\"goal\"><span class=\"{}\">{}</span><small>≤ {:.2f}</small></td>",
        one.met() ? "met" : "missed", one.met() ? "✓ met" : "✗ not met", *one.goal);
}

void write_row(std::ostream& out, const figure& one, const columns& shown)
{
    fmt::print(
        out, "<tr{}><th scope=\"row\">{}</th>{}{}{}{}</tr>\n", one.samples.empty() ? "" : " class=\"joined\"",
        escaped(one.label()), shown.reference ? number_cell(one.reference) : "", number_cell(one.measured),
        shown.ratio ? ratio_cell(one) : "", shown.goal ? goal_cell(one) : "");
    if (!one.samples.empty())
    {
        fmt::print(
            out, "<tr class=\"samples\"><td colspan=\"{}\">{:.2f}</td></tr>\n", shown.count(),
            fmt::join(one.samples, " &ensp;"));
    }
}

void write_table(std::ostream& out, const figure_group& group)
{
    const columns shown{group};
    fmt::print(
        out,
        "<div class=\"wide\"><table>\n<thead><tr><th></th>{}<th scope=\"col\">{}</th>{}{}</tr></thead>\n"
        "<tbody>\n",
        shown.reference ? fmt::format("<th scope=\"col\">{}</th>", escaped(group.reference)) : std::string{},
        escaped(group.measured), shown.ratio ? "<th scope=\"col\">ratio<small>min – max</small></th>" : "",
        shown.goal ? "<th scope=\"col\" class=\"goal\">goal</th>" : "");
    for (const figure& one : group.figures)
    {
        write_row(out, one, shown);
    }
    fmt::print(out, "</tbody>\n</table></div>\n");
}

/// Returns the SVG as an element of the page. Its ids get the plot's name as a prefix, because ids are unique per
/// page.
std::string embedded(const plot& one, const std::string& svg)
{
    const std::string name = escaped(one.name);
    const std::string image = svg.substr(std::min(svg.find("<svg"), svg.size()));
    const std::regex id{R"((\bid=['"]|href=['"]#|url\(#))"};
    const std::string with_ids = std::regex_replace(image, id, fmt::format("$1{}-", name));
    const std::string role = fmt::format("<svg role=\"img\" aria-label=\"{}\"", escaped(one.title));
    // Removes the first title: gnuplot generates it, and browsers show it as a tooltip.
    const std::regex title{"<title>[^<]*</title>"};
    return role + std::regex_replace(with_ids, title, "", std::regex_constants::format_first_only).substr(4);
}

void write_group(std::ostream& out, const figure_group& group, const pictures& drawn)
{
    fmt::print(out, "<section>\n<h2>{}</h2>\n", escaped(group.title));
    if (!group.figures.empty())
    {
        write_table(out, group);
    }
    for (const std::string& note : group.notes)
    {
        fmt::print(out, "<p class=\"quiet\">{}</p>\n", escaped(note));
    }
    for (const plot& one : group.plots)
    {
        if (const auto picture = drawn.find(one.name); picture != drawn.end())
        {
            fmt::print(out, "<figure>\n{}</figure>\n", embedded(one, picture->second));
        }
    }
    fmt::print(out, "</section>\n");
}

void write_list(std::ostream& out, const std::vector<std::pair<std::string_view, std::string>>& entries)
{
    fmt::print(out, "<dl>\n");
    for (const auto& [name, value] : entries)
    {
        fmt::print(out, "<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
    }
    fmt::print(out, "</dl>\n");
}

void write_circumstances(std::ostream& out, const results& measured)
{
    const machine_info& machine = measured.machine;
    const options& settings = measured.settings;
    fmt::print(out, "<section>\n<h2>The machine</h2>\n");
    write_list(
        out,
        {{"processor", fmt::format("{}, {} CPUs", machine.processor, machine.cores)},
         {"restricted to", fmt::format("CPU {}, with the masters, in the sections on one CPU", machine.cpu)},
         {"load before", fmt::format("{:.2f}", machine.load)},
         {"kernel", machine.kernel},
         {"masters", machine.server},
         {"compiler", machine.compiler},
         {"Boost", machine.boost}});
    fmt::print(out, "</section>\n<section>\n<h2>The settings</h2>\n");
    write_list(
        out,
        {{"masters", fmt::format("{}", settings.masters)},
         {"rounds", fmt::format("{} of each client, alternating", settings.rounds)},
         {"pairs", fmt::format("{} of acquire and release per round", settings.pairs)},
         {"kept leases",
          fmt::format("{}, for {} s", fmt::join(settings.kept, ", "), settings.keep_for.count() / 1000)},
         {"trials", fmt::format(
                        "{} s of restarts, {} runs with hung masters, {} races",
                        settings.trials.rolling.count(), settings.trials.hung_runs, settings.trials.races)}});
    fmt::print(out, "</section>\n");
}

} // namespace

void write_page(std::ostream& out, const results& measured, const pictures& drawn)
{
    fmt::print(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>redlock: benchmark results</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n"
        "<h1>redlock: benchmark results</h1>\n<p class=\"quiet\">{}</p>\n{}",
        page_style, escaped(measured.began), summary(measured));
    for (const std::string& note : notes_on(measured))
    {
        fmt::print(out, "<p>{}</p>\n", escaped(note));
    }
    for (const figure_group& group : measured.groups)
    {
        write_group(out, group, drawn);
    }
    write_circumstances(out, measured);
    fmt::print(out, "</main>\n</body>\n</html>\n");
}

} // namespace redlock::bench
