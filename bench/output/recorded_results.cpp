// SPDX-License-Identifier: BSL-1.0
// What stands in a results.json, as far as two runs are compared.
#include "output/recorded_results.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace redlock::bench
{

namespace
{

namespace json = boost::json;

const json::value& member(const json::object& of, std::string_view name)
{
    const json::value* found = of.if_contains(name);
    if (found == nullptr)
    {
        throw std::runtime_error{fmt::format("there is no \"{}\" where one belongs", name)};
    }
    return *found;
}

template <class T>
const T& required(const T* found, std::string_view name, std::string_view kind)
{
    if (found == nullptr)
    {
        throw std::runtime_error{fmt::format("\"{}\" isn't {}", name, kind)};
    }
    return *found;
}

const json::object& object(const json::object& of, std::string_view name)
{
    return required(member(of, name).if_object(), name, "an object");
}

const json::array& array(const json::object& of, std::string_view name)
{
    return required(member(of, name).if_array(), name, "an array");
}

std::string text(const json::object& of, std::string_view name)
{
    const json::string& found = required(member(of, name).if_string(), name, "a text");
    return {found.data(), found.size()};
}

double number(const json::object& of, std::string_view name)
{
    const json::value& found = member(of, name);
    if (!found.is_number())
    {
        throw std::runtime_error{fmt::format("\"{}\" isn't a number", name)};
    }
    return found.to_number<double>();
}

std::vector<std::pair<std::string, std::string>> in_words(const json::object& values)
{
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& [name, value] : values)
    {
        // serialize() writes 0.12 as 1.2E-1.
        if (const double* number = value.if_double(); number != nullptr)
        {
            out.emplace_back(name, fmt::format("{:.6g}", *number));
            continue;
        }
        const json::string* words = value.if_string();
        out.emplace_back(
            name, words != nullptr ? std::string{words->data(), words->size()} : json::serialize(value));
    }
    return out;
}

const json::object& element(const json::value& of, std::string_view array)
{
    return required(of.if_object(), array, "an array of objects");
}

/// Empty when it isn't finite, which is written as null: there is nothing to compare then.
std::optional<recorded_figure> figure_in(const json::object& from, const std::string& group)
{
    if (member(from, "measured").is_null())
    {
        return std::nullopt;
    }
    const std::string unit = text(from, "unit");
    recorded_figure out{group, text(from, "name") + (unit.empty() ? "" : ", " + unit), 0, {}, {}};
    out.measured = number(from, "measured");
    if (from.contains("ratio"))
    {
        const json::object& ratio = object(from, "ratio");
        if (member(ratio, "median").is_null() || member(ratio, "least").is_null() ||
            member(ratio, "most").is_null())
        {
            return std::nullopt;
        }
        out.ratio = {number(ratio, "median"), number(ratio, "least"), number(ratio, "most")};
    }
    if (from.contains("goal"))
    {
        out.met = required(member(from, "met").if_bool(), "met", "true or false");
    }
    return out;
}

recorded_results parse_results(const std::string& content)
{
    boost::system::error_code problem;
    const json::value whole = json::parse(content, problem);
    if (problem)
    {
        throw std::runtime_error{fmt::format("it isn't JSON: {}", problem.message())};
    }
    const json::object& top = required(whole.if_object(), "the whole of it", "an object");
    recorded_results out;
    out.began = top.contains("began") ? text(top, "began") : "an unknown time";
    out.machine = in_words(object(top, "machine"));
    out.settings = in_words(object(top, "settings"));
    for (const json::value& each : array(top, "groups"))
    {
        const json::object& group = element(each, "groups");
        const std::string title = text(group, "title");
        for (const json::value& one : array(group, "figures"))
        {
            if (auto figure = figure_in(element(one, "figures"), title))
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
    std::ostringstream content;
    write_json(content, measured);
    return parse_results(content.str());
}

recorded_results read_results(const std::string& file)
{
    std::ifstream in{file};
    if (!in || std::filesystem::is_directory(file))
    {
        throw std::runtime_error{fmt::format(
            "the file '{}' can't be read; --compare takes the results.json of an earlier run", file)};
    }
    const std::string content{std::istreambuf_iterator<char>{in}, {}};
    try
    {
        return parse_results(content);
    }
    catch (const std::exception& problem)
    {
        throw std::runtime_error{
            fmt::format("the file '{}' isn't the results.json of an earlier run: {}", file, problem.what())};
    }
}

} // namespace redlock::bench
