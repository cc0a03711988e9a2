// SPDX-License-Identifier: BSL-1.0
// Runs gnuplot on the plots.
#include "output/pictures.hpp"

#include "output/gnuplot_script.hpp"

#include "support/child_process.hpp"
#include "support/server.hpp"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

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
