// SPDX-License-Identifier: BSL-1.0
// The directory of the results.
#include "output/results.hpp"

#include <fstream>
#include <stdexcept>
#include <system_error>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace redlock::bench
{

namespace
{

template <class Writer>
void write_file(const std::filesystem::path& file, Writer write)
{
    std::ofstream out{file};
    write(out);
    out.close();
    if (!out)
    {
        throw std::runtime_error{fmt::format("cannot write the file '{}'", file.string())};
    }
}

} // namespace

void create_results_directory(const std::filesystem::path& directory)
{
    std::error_code problem;
    std::filesystem::create_directories(directory, problem);
    if (problem || ::access(directory.c_str(), W_OK | X_OK) != 0)
    {
        throw std::runtime_error{
            fmt::format("--results: cannot write to the directory '{}'", directory.string())};
    }
}

void write_files(const results& measured, const std::filesystem::path& directory)
{
    write_file(
        directory / "results.json",
        [&](std::ostream& out) { out << boost::json::serialize(to_json(measured)) << '\n'; });
    const pictures drawn = draw_pictures(measured, directory);
    write_file(directory / "index.html", [&](std::ostream& out) { write_page(out, measured, drawn); });
}

} // namespace redlock::bench
