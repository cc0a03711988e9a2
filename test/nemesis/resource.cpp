// SPDX-License-Identifier: BSL-1.0
// The log is judged without regard to the comparison that the resource has made.
#include "resource.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace redlock::nemesis
{

namespace
{

/// KEYS: the resource. ARGV: token, owner id, whether it is late, and the value if it writes.
constexpr const char* script_text = R"(
local shown = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
local accepted = {}
redis.call('RPUSH', KEYS[1] .. ':log', (accepted and '1 ' or '0 ') .. table.concat(ARGV, ' '))
if not accepted then return false end
local value = ARGV[4] or redis.call('HGET', KEYS[1], 'value') or '0'
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', value)
return value
)";

test::server_options on_a_unix_socket()
{
    test::server_options options = test::server_options::plain();
    options.over = test::transport::unix_socket;
    return options;
}

} // namespace

checked_resource::checked_resource(bool compares)
    : server_{on_a_unix_socket()},
      script_{
          server_
              .command(
                  {"SCRIPT", "LOAD",
                   fmt::format(fmt::runtime(script_text), compares ? "tonumber(ARGV[1]) >= shown" : "true")})
              .text}
{
}

std::vector<request> checked_resource::log(const std::string& name)
{
    std::vector<request> all;
    for (const test::reply& line : server_.command({"LRANGE", name + ":log", "0", "-1"}).elements)
    {
        request& one = all.emplace_back();
        std::istringstream words{line.text};
        words >> one.accepted >> one.token >> one.owner >> one.late;
        if (std::uint64_t value = 0; words >> value)
        {
            one.written = value;
        }
    }
    return all;
}

visit::visit(resource_access& by, std::string name, std::uint64_t token, std::string owner, bool late)
    : by_{by}, name_{std::move(name)}, token_{std::to_string(token)}, owner_{std::move(owner)}
{
    send(late, {});
}

void visit::write(bool late)
{
    if (value_)
    {
        send(late, *value_ + 1);
    }
}

void visit::send(bool late, std::optional<std::uint64_t> value)
{
    std::vector<std::string_view> words{"EVALSHA", by_.script, "1", name_, token_, owner_, late ? "1" : "0"};
    const std::string number = std::to_string(value.value_or(0));
    if (value)
    {
        words.emplace_back(number);
    }
    const test::reply answer = by_.connection.command(words);
    if (answer.is_error())
    {
        throw std::runtime_error{answer.text};
    }
    value_.reset();
    if (!answer.is_null())
    {
        value_ = std::stoull(answer.text);
    }
}

std::vector<std::string> wrong_writes(const std::vector<request>& log)
{
    std::vector<std::string> found;
    std::uint64_t shown = 0;
    std::uint64_t value = 0;
    std::string writer;
    std::set<std::string> writers;
    for (const request& one : log)
    {
        if (one.accepted && one.written)
        {
            const std::string write =
                fmt::format("{} by {} with token {}", *one.written, one.owner, one.token);
            if (one.token < shown)
            {
                found.push_back(fmt::format("stale, after {} was shown: {}", shown, write));
            }
            if (*one.written != value + 1)
            {
                found.push_back(fmt::format("an update is lost, after {}: {}", value, write));
            }
            if (one.owner != writer && !writers.insert(one.owner).second)
            {
                found.push_back(fmt::format("in the midst of those of {}: {}", writer, write));
            }
            writer = one.owner;
            value = *one.written;
        }
        shown = std::max(shown, one.token);
    }
    return found;
}

} // namespace redlock::nemesis
