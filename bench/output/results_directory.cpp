// SPDX-License-Identifier: BSL-1.0
// The directory of the results.
#include "output/results_directory.hpp"

#include "output/page.hpp"
#include "output/pictures.hpp"
#include "output/results_json.hpp"

#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

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

results_directory::results_directory(std::filesystem::path place) : path_{std::move(place)}
{
    std::error_code problem;
    std::filesystem::create_directories(path_, problem);
    if (problem || ::access(path_.c_str(), W_OK | X_OK) != 0)
    {
        throw std::runtime_error{
            fmt::format("--results: cannot write to the directory '{}'", path_.string())};
    }
}

void results_directory::write(const results& measured) const
{
    write_file(
        path_ / "results.json",
        [&](std::ostream& out) { out << boost::json::serialize(to_json(measured)) << '\n'; });
    const pictures drawn = draw_pictures(measured, path_);
    write_file(page(), [&](std::ostream& out) { write_page(out, measured, drawn); });
}

} // namespace redlock::bench
