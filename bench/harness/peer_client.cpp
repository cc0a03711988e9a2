// SPDX-License-Identifier: BSL-1.0
// Controls the programs in peers/ by lines of text.
#include "harness/peer_client.hpp"

#include "harness/peer_servers.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>

#include <cassert>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace redlock::bench
{

namespace asio = boost::asio;
using boost::system::error_code;

namespace
{

constexpr std::chrono::minutes startup_timeout{2}; // Longer than the program's own timeout for connecting.
constexpr std::string_view runtime = "node";
// Empty if CMake didn't find redis++.
constexpr std::string_view redis_plus_plus = REDLOCK_REDIS_PLUS_PLUS_PEER;

/// Returns the command line of the program for this kind of peer, up to the addresses. Throws if it isn't
/// installed.
std::vector<std::string> driver_command(const std::string& kind)
{
    if (kind == "redis++")
    {
        if (redis_plus_plus.empty())
        {
            throw std::runtime_error{"CMake did not find redis++ 1.3.6 or newer together with hiredis; set "
                                     "CMAKE_PREFIX_PATH to where they are installed"};
        }
        return {std::string{redis_plus_plus}};
    }
    if (test::find_program(std::string{runtime}).empty())
    {
        throw std::runtime_error{fmt::format("{} is not installed", runtime)};
    }
    return {std::string{runtime}, REDLOCK_PEERS_DIRECTORY "/peer.js", kind};
}

/// Returns the stream after the first word of an answer. Throws if the word isn't the expected one.
std::istringstream expect(std::string_view word, std::string answer)
{
    std::istringstream in{std::move(answer)};
    std::string first;
    in >> first >> std::ws;
    if (first != word)
    {
        std::string rest;
        std::getline(in, rest);
        throw std::runtime_error{
            first == "failed" ? rest : fmt::format("unexpected answer: '{}' instead of '{}'", first, word)};
    }
    return in;
}

} // namespace

peer_client::peer_client(const std::string& kind, const std::vector<std::string>& addresses)
{
    std::vector<std::string> words = driver_command(kind);
    words.insert(words.end(), addresses.begin(), addresses.end());
    test::unique_fd socket;
    program_ = test::child_process{words, output(), socket};
    socket_.assign({}, socket.release());
    std::istringstream answer = expect("ready", read_line(startup_timeout));
    std::getline(answer, name_, ':');
    std::getline(answer >> std::ws, description_);
}

run_record peer_client::run(const workload& load)
{
    assert(load.workers == 1);
    asio::write(socket_, asio::buffer(fmt::format("run {}\n", load.pairs)));
    std::istringstream answer = expect("result", read_line(load.time_limit));
    run_record done;
    std::chrono::nanoseconds::rep sample = 0;
    answer >> sample >> done.failed >> done.unconfirmed;
    done.duration = std::chrono::nanoseconds{sample};
    done.acquires.reserve(load.pairs);
    while (answer >> sample)
    {
        done.acquires.emplace_back(sample);
    }
    if (!answer.eof())
    {
        throw std::runtime_error{"unexpected answer: not a list of numbers"};
    }
    if (done.acquires.empty())
    {
        throw std::runtime_error{fmt::format(
            "none of {} acquires succeeded; the end of its output: {}", load.pairs, end_of(output()))};
    }
    return done;
}

std::string peer_client::read_line(std::chrono::nanoseconds time_limit)
{
    std::optional<error_code> result;
    asio::async_read_until(
        socket_, asio::dynamic_buffer(unread_), '\n', [&](error_code error, std::size_t) { result = error; });
    io_.restart();
    io_.run_for(time_limit);
    if (!result)
    {
        throw std::runtime_error{fmt::format(
            "no answer within {} s", std::chrono::floor<std::chrono::seconds>(time_limit).count())};
    }
    if (*result)
    {
        throw std::runtime_error{
            fmt::format("the program ended; the end of its output: {}", end_of(output()))};
    }
    const std::size_t end = unread_.find('\n');
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
}

} // namespace redlock::bench
