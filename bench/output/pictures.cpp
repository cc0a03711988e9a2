// SPDX-License-Identifier: BSL-1.0
// The plots as pictures: gnuplot commands in a common style, and running gnuplot.
#include "output/results.hpp"

#include "support/child_process.hpp"
#include "support/server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/algorithm/string/replace.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace redlock::bench
{

namespace
{

/// The settings for all plots, which the script begins with.
constexpr std::string_view picture_style =
    R"(# To draw the pictures again: gnuplot --default-settings pictures.gnuplot
set encoding utf8
set border 3 linecolor rgb '#808080' linewidth 1
set tics nomirror out scale 0.5 textcolor rgb '#404040'
set grid xtics ytics back linetype 1 linecolor rgb '#e8e8e8' linewidth 0.75
set key bmargin center horizontal Left reverse samplen 3 spacing 1.25 height 0.6 textcolor rgb '#202020'
set tmargin 3.2
set rmargin 4
set xlabel offset 0, 0.4
svg = "svg size 720,450 dynamic noenhanced font 'sans-serif,14' background '#ffffff'"
png = "pngcairo size 1440,900 noenhanced font 'sans,14' fontscale 1.5 linewidth 2 pointscale 2"
)";

// From the palette of Okabe and Ito, which is distinguishable with all types of colour vision.
constexpr std::string_view colour_of_redlock = "#0072b2";
constexpr std::string_view colour_of_the_reference = "#8c8c8c";
constexpr std::array<std::string_view, 5> colours_of_others{
    "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
// Filled circle, square, triangle and diamond. Four shapes and five colours, so combinations repeat late.
constexpr std::array<int, 4> shapes{7, 5, 9, 13};
constexpr std::size_t max_marked_points = 30; // With more points the markers hide the line.

/// Quotes a string for gnuplot.
std::string quoted(const std::string& text)
{
    return fmt::format("'{}'", boost::replace_all_copy(text, "'", "''"));
}

std::pair<std::string_view, std::string_view> kind_and_variant(std::string_view name)
{
    const std::size_t comma = name.find(',');
    return comma == std::string_view::npos ? std::pair{name, std::string_view{}}
                                           : std::pair{name.substr(0, comma), name.substr(comma + 1)};
}

/// Returns the index of the text, which is appended if it is new.
std::size_t index_of(std::string_view text, std::vector<std::string_view>& known)
{
    const auto found = std::find(known.begin(), known.end(), text);
    const auto index = static_cast<std::size_t>(found - known.begin());
    if (found == known.end())
    {
        known.push_back(text);
    }
    return index;
}

/// Assigns colours, markers and dashes to lines.
class line_styles
{
  public:
    explicit line_styles(std::string_view reference) : reference_{reference} {}

    std::string of(const series& line)
    {
        const auto [kind, variant] = kind_and_variant(line.name);
        const std::size_t shape = index_of(kind, kinds_) % shapes.size();
        const std::string points = line.points.size() > max_marked_points
                                       ? std::string{"lines"}
                                       : fmt::format("linespoints pointtype {} pointsize 0.8", shapes[shape]);
        return fmt::format(
            "with {} linecolor rgb '{}' linewidth 2 dashtype {}", points, colour_of(kind),
            index_of(variant, variants_) + 1);
    }

  private:
    std::string_view colour_of(std::string_view kind)
    {
        if (kind == "redlock")
        {
            return colour_of_redlock;
        }
        return kind == reference_ ? colour_of_the_reference
                                  : colours_of_others[index_of(kind, others_) % colours_of_others.size()];
    }

    std::string_view reference_;
    std::vector<std::string_view> kinds_;
    std::vector<std::string_view> variants_;
    std::vector<std::string_view> others_;
};

std::string data_of(const plot& one)
{
    std::string out;
    for (std::size_t line = 0; line < one.lines.size(); ++line)
    {
        out += fmt::format("$line_{} << end_of_data\n", line);
        for (const auto& [x, y] : one.lines[line].points)
        {
            out += fmt::format("{} {}\n", x, y);
        }
        out += "end_of_data\n";
    }
    return out;
}

/// Returns all values of one coordinate.
std::vector<double> values(const plot& one, double std::pair<double, double>::*coordinate)
{
    std::vector<double> out;
    for (const series& line : one.lines)
    {
        for (const auto& point : line.points)
        {
            out.push_back(point.*coordinate);
        }
    }
    return out;
}

constexpr std::string_view plain_numbers = "%.10g"; // 100000, not 1e+05.

/// Returns the candidates for tics of a logarithmic axis, beyond both extremes. The fewer powers of ten they span,
/// the more steps each has.
std::vector<double> marks(double min, double max)
{
    const double powers = std::log10(max / min);
    std::vector<double> steps{1};
    if (powers <= 1)
    {
        steps = {1, 1.5, 2, 3, 5, 7};
    }
    else if (powers <= 3)
    {
        steps = {1, 2, 5};
    }
    std::vector<double> out;
    const int last = static_cast<int>(std::ceil(std::log10(max))) + 1;
    for (int power = static_cast<int>(std::floor(std::log10(min))); power <= last; ++power)
    {
        for (const double step : steps)
        {
            out.push_back(step * std::pow(10.0, power));
        }
    }
    return out;
}

/// Requires at least one value. The axis starts at zero unless there are negative values, so that heights are
/// proportional.
std::string linear_axis(char which, std::span<const double> values)
{
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    const std::string_view begin = *min < 0 ? "*" : "0";
    const std::string_view end = *min == 0 && *max == 0 ? "1" : "*";
    return fmt::format(
        "unset logscale {0}\nset {0}range [{1}:{2}]\nset {0}tics autofreq\nset format {0} '{3}'\n", which,
        begin, end, plain_numbers);
}

/// Requires at least one value, all positive. The axis starts and ends at a tic. gnuplot's own tics are powers of
/// ten, and there may be none in the range.
std::string logarithmic_axis(char which, std::span<const double> values)
{
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    const std::vector<double> all = marks(*min, *max);
    constexpr double rounding = 1e-9;
    // The last tic that isn't above the minimum, and the first one after it that isn't below the maximum.
    const auto first = std::prev(std::upper_bound(all.begin() + 1, all.end(), *min * (1 + rounding)));
    const auto last = std::lower_bound(std::next(first), std::prev(all.end()), *max * (1 - rounding));
    std::vector<std::string> written;
    for (auto mark = first; mark <= last; ++mark)
    {
        written.push_back(fmt::format("'{0:.10g}' {0:.10g}", *mark));
    }
    return fmt::format(
        "set logscale {0}\nset {0}range [{1:.10g}:{2:.10g}]\nset {0}tics ({3})\n", which, *first, *last,
        fmt::join(written, ", "));
}

/// Returns the plot without what can't be drawn: points that aren't finite or, on a logarithmic axis, not positive,
/// and lines without points.
plot drawable(plot one)
{
    const auto bad = [&](const std::pair<double, double>& point)
    {
        const auto& [x, y] = point;
        return !std::isfinite(x) || !std::isfinite(y) || (one.logarithmic_x && x <= 0) ||
               (one.logarithmic_y && y <= 0);
    };
    for (series& line : one.lines)
    {
        std::erase_if(line.points, bad);
    }
    std::erase_if(one.lines, [](const series& line) { return line.points.empty(); });
    return one;
}

/// Returns the commands that draw a plot with at least one line as NAME.svg and NAME.png. In the name of a line,
/// the text before a comma selects the colour, the text after it the dashes: "redlock, p99". The line named
/// `reference` is grey.
std::string script_of(const plot& one, std::string_view reference)
{
    line_styles styles{reference};
    std::vector<std::string> lines;
    for (std::size_t line = 0; line < one.lines.size(); ++line)
    {
        const series& drawn = one.lines[line];
        lines.push_back(fmt::format("$line_{} title {} {}", line, quoted(drawn.name), styles.of(drawn)));
    }
    const auto axis =
        [](char which, const std::string& title, bool logarithmic, const std::vector<double>& all)
    {
        return fmt::format(
            "set {0}label {1} textcolor rgb '#404040'\n{2}", which, quoted(title),
            logarithmic ? logarithmic_axis(which, all) : linear_axis(which, all));
    };
    return fmt::format("\n# {}\n", one.name) + data_of(one) +
           fmt::format(
               "set label 1 {} at screen 0.02, screen 0.955 font ',16' textcolor rgb '#202020'\n",
               quoted(one.title)) +
           axis('x', one.x, one.logarithmic_x, values(one, &std::pair<double, double>::first)) +
           axis('y', one.y, one.logarithmic_y, values(one, &std::pair<double, double>::second)) +
           fmt::format(
               "set terminal @svg\nset output '{0}.svg'\nplot {1}\nset terminal @png\nset output '{0}.png'\n"
               "replot\nunset output\n",
               one.name, fmt::join(lines, ", \\\n     "));
}

constexpr const char* script_name = "pictures.gnuplot";
constexpr std::chrono::minutes gnuplot_timeout{2};

std::string content_of(const std::filesystem::path& file)
{
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// Runs the script in the directory, so that it needs no paths. Returns gnuplot's messages.
std::string run_gnuplot(const std::filesystem::path& directory)
{
    if (test::find_program("gnuplot").empty())
    {
        return "gnuplot is not installed (Debian: gnuplot-nox)";
    }
    const test::temporary_directory log;
    const std::string messages = log.path() + "/messages";
    const test::child_process gnuplot{
        {"env", "--chdir=" + directory.string(), "gnuplot", "--default-settings", script_name}, messages};
    return gnuplot.wait_for_end(gnuplot_timeout) ? content_of(messages) : "gnuplot did not end in time";
}

} // namespace

pictures draw_pictures(const results& measured, const std::filesystem::path& directory)
{
    pictures drawn;
    std::string script{picture_style};
    for (const figure_group& group : measured.groups)
    {
        for (const plot& each : group.plots)
        {
            const plot one = drawable(each);
            if (!one.lines.empty())
            {
                std::filesystem::remove(directory / (one.name + ".svg"));
                drawn[one.name];
                script += script_of(one, group.reference);
            }
        }
    }
    if (drawn.empty())
    {
        return {};
    }
    std::ofstream{directory / script_name} << script;
    const std::string messages = run_gnuplot(directory);
    for (auto& [name, svg] : drawn)
    {
        svg = content_of(directory / (name + ".svg"));
    }
    if (std::erase_if(drawn, [](const auto& each) { return each.second.empty(); }) > 0)
    {
        fmt::print(stderr, "bench: not all pictures were drawn: {}\n", messages);
    }
    return drawn;
}

} // namespace redlock::bench
