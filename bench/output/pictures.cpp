// SPDX-License-Identifier: BSL-1.0
// Runs gnuplot on the plots.
#include "output/pictures.hpp"

#include "output/gnuplot_script.hpp"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::bench
{

namespace
{

constexpr const char* script_name = "pictures.gnuplot";

/// What went wrong; empty if nothing did. What gnuplot itself has to say goes to stderr.
std::string run_gnuplot(const std::filesystem::path& directory)
{
    std::string program = "gnuplot";
    std::string defaults =
        "--default-settings"; // None of the user's own: the pictures look the same everywhere.
    std::string script = script_name;
    char* const arguments[] = {program.data(), defaults.data(), script.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // So that no path stands in the script.
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    pid_t child = -1;
    const int problem = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem == ENOENT)
    {
        return "gnuplot isn't installed (Debian: gnuplot-nox)";
    }
    if (problem != 0)
    {
        return fmt::format("gnuplot can't be started: {}", std::generic_category().message(problem));
    }
    int status = 0;
    while (::waitpid(child, &status, 0) == -1 && errno == EINTR)
    {
    }
    return status == 0 ? std::string{} : std::string{"gnuplot failed; its message is above"};
}

std::string content_of(const std::filesystem::path& file)
{
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace

pictures draw_pictures(const results& measured, const std::filesystem::path& directory)
{
    std::vector<std::string> names;
    std::string script{picture_style};
    for (const figure_group& group : measured.groups)
    {
        for (const plot& each : group.plots)
        {
            const plot one = drawable(each);
            if (!one.lines.empty())
            {
                names.push_back(one.name);
                script += script_of(one, group.reference);
            }
        }
    }
    if (names.empty())
    {
        return {};
    }
    std::ofstream{directory / script_name} << script;
    if (const std::string problem = run_gnuplot(directory); !problem.empty())
    {
        fmt::print(stderr, "bench: there are no pictures: {}\n", problem);
        return {};
    }
    pictures drawn;
    for (const std::string& name : names)
    {
        drawn[name] = content_of(directory / (name + ".svg"));
    }
    return drawn;
}

} // namespace redlock::bench
