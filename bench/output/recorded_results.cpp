// SPDX-License-Identifier: BSL-1.0
// The part of a results.json that --compare uses.
#include "output/recorded_results.hpp"

#include "output/results_json.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

namespace json = boost::json;

/// Throws if the member is missing or has another type.
template <class T>
T get(const json::object& from, std::string_view name)
{
    if (const json::value* found = from.if_contains(name); found != nullptr)
    {
        if (auto converted = json::try_value_to<T>(*found))
        {
            return std::move(*converted);
        }
    }
    throw std::runtime_error{fmt::format("\"{}\" is missing or has the wrong type", name)};
}

named_values named_values_in(const json::object& values)
{
    named_values out;
    for (const auto& [name, value] : values)
    {
        if (const double* number = value.if_double(); number != nullptr)
        {
            // serialize() would write 0.12 as 1.2E-1.
            out.emplace_back(name, fmt::format("{:.6g}", *number));
            continue;
        }
        const json::string* text = value.if_string();
        out.emplace_back(name, text != nullptr ? std::string{*text} : json::serialize(value));
    }
    return out;
}

/// Returns nothing for a figure with a value that isn't finite, which is written as null: it can't be compared.
std::optional<recorded_figure> figure_in(const json::object& from, const std::string& group)
{
    using number = std::optional<double>;
    const auto unit = get<std::string>(from, "unit");
    const auto measured = get<number>(from, "measured");
    if (!measured)
    {
        return std::nullopt;
    }
    recorded_figure out{
        group, get<std::string>(from, "name") + (unit.empty() ? "" : ", " + unit), *measured, {}, {}};
    if (from.contains("ratio"))
    {
        const auto ratio = get<json::object>(from, "ratio");
        const auto median = get<number>(ratio, "median");
        const auto min = get<number>(ratio, "least");
        const auto max = get<number>(ratio, "most");
        if (!median || !min || !max)
        {
            return std::nullopt;
        }
        out.ratio = {*median, *min, *max};
    }
    if (from.contains("goal"))
    {
        out.met = get<bool>(from, "met");
    }
    return out;
}

recorded_results results_in(const json::object& top)
{
    using objects = std::vector<json::object>;
    recorded_results out;
    out.began = get<std::string>(top, "began");
    out.machine = named_values_in(get<json::object>(top, "machine"));
    out.settings = named_values_in(get<json::object>(top, "settings"));
    for (const json::object& group : get<objects>(top, "groups"))
    {
        const auto title = get<std::string>(group, "title");
        for (const json::object& each : get<objects>(group, "figures"))
        {
            if (auto figure = figure_in(each, title))
            {
                out.figures.push_back(*std::move(figure));
            }
        }
    }
    return out;
}

} // namespace

recorded_results recorded(const results& measured)
{
    return results_in(to_json(measured));
}

recorded_results read_results(const std::string& file)
{
    std::ifstream in{file};
    const std::string content{std::istreambuf_iterator<char>{in}, {}};
    if (content.empty())
    {
        throw std::runtime_error{fmt::format(
            "--compare: cannot read the file '{}', or it is empty; give the results.json of an earlier run",
            file)};
    }
    try
    {
        return results_in(json::parse(content).as_object());
    }
    catch (const std::exception& problem)
    {
        throw std::runtime_error{fmt::format(
            "--compare: the file '{}' is not the results.json of an earlier run: {}", file, problem.what())};
    }
}

} // namespace redlock::bench
