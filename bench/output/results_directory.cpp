// SPDX-License-Identifier: BSL-1.0
// Where the results of a run are written.
#include "output/results_directory.hpp"

#include "output/page.hpp"
#include "output/pictures.hpp"

#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

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
        throw std::runtime_error{fmt::format("the file '{}' can't be written", file.string())};
    }
}

} // namespace

results_directory::results_directory(std::filesystem::path place) : path_{std::move(place)}
{
    std::error_code problem;
    std::filesystem::create_directories(path_, problem);
    if (problem || ::access(path_.c_str(), W_OK | X_OK) != 0)
    {
        throw std::runtime_error{fmt::format(
            "nothing can be written to the directory '{}'; --results takes another one", path_.string())};
    }
}

void results_directory::write(const results& measured) const
{
    write_file(path_ / "results.json", [&](std::ostream& out) { write_json(out, measured); });
    const pictures drawn = draw_pictures(measured, path_);
    write_file(page(), [&](std::ostream& out) { write_page(out, measured, drawn); });
}

} // namespace redlock::bench
