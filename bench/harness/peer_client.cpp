// SPDX-License-Identifier: BSL-1.0
// Controls the programs in peers/ by lines of text.
#include "harness/peer_client.hpp"

#include "harness/peer_servers.hpp"

#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

namespace redlock::bench
{

namespace
{

constexpr std::chrono::minutes startup_timeout{2}; // Longer than the program's own timeout for connecting.
constexpr std::string_view runtime = "node";
// Empty if CMake didn't find redis++.
constexpr std::string_view redis_plus_plus = REDLOCK_REDIS_PLUS_PLUS_PEER;

/// Returns the command line of the program for this kind of peer, up to the addresses. Throws if it isn't
/// installed.
std::vector<std::string> driver_join(const std::string& kind)
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

/// Removes and returns the text before `end`; removes `end` as well.
std::string_view take_until(std::string_view& text, std::string_view end)
{
    const std::size_t at = text.find(end);
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
    return taken;
}

std::uint64_t take_number(std::string_view& text)
{
    const std::string_view word = take_until(text, " ");
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size())
    {
        throw std::runtime_error{fmt::format("unexpected answer: '{}' is not a number", word)};
    }
    return value;
}

/// Returns the rest of an answer after its first word. Throws if the word isn't the expected one.
std::string_view expect(std::string_view word, std::string_view answer)
{
    const std::string_view first = take_until(answer, " ");
    if (first == "failed")
    {
        throw std::runtime_error{std::string{answer}};
    }
    if (first != word)
    {
        throw std::runtime_error{
            fmt::format("unexpected answer: '{}' instead of '{}'", first.substr(0, 80), word)};
    }
    return answer;
}

} // namespace

peer_client::peer_client(const std::string& kind, const std::vector<std::string>& addresses)
{
    std::vector<std::string> words = driver_join(kind);
    words.insert(words.end(), addresses.begin(), addresses.end());
    program_ = test::child_process{words, output(), socket_};
    const std::string line = read_line(startup_timeout);
    std::string_view answer = expect("ready", line);
    name_ = take_until(answer, ": ");
    description_ = answer;
}

run_record peer_client::run(const workload& load)
{
    assert(load.workers == 1);
    const std::string request = fmt::format("run {}\n", load.pairs);
    if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
    {
        throw std::system_error{errno, std::generic_category(), "sending the request to the peer"};
    }
    const std::string line = read_line(load.time_limit);
    std::string_view answer = expect("result", line);
    run_record done;
    done.duration = std::chrono::nanoseconds{take_number(answer)};
    done.failed = take_number(answer);
    done.unconfirmed = take_number(answer);
    done.acquires.reserve(load.pairs);
    while (!answer.empty())
    {
        done.acquires.emplace_back(take_number(answer));
    }
    if (done.acquires.empty())
    {
        throw std::runtime_error{fmt::format(
            "none of {} acquires succeeded; the end of its output: {}", load.pairs, last_lines(output()))};
    }
    return done;
}

std::string peer_client::read_line(std::chrono::nanoseconds time_limit)
{
    const auto deadline = std::chrono::steady_clock::now() + time_limit;
    std::size_t end = unread_.find('\n');
    while (end == std::string::npos)
    {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0)
        {
            throw std::runtime_error{fmt::format(
                "no answer within {} s", std::chrono::floor<std::chrono::seconds>(time_limit).count())};
        }
        pollfd readiness{socket_.get(), POLLIN, 0};
        if (::poll(&readiness, 1, static_cast<int>(left.count())) != 1)
        {
            continue;
        }
        std::array<char, 65536> buffer;
        const ssize_t received = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (received <= 0)
        {
            throw std::runtime_error{
                fmt::format("the program ended; the end of its output: {}", last_lines(output()))};
        }
        const std::string_view added{buffer.data(), static_cast<std::size_t>(received)};
        const std::size_t at = added.find('\n');
        end = at == std::string_view::npos ? at : unread_.size() + at;
        unread_ += added;
    }
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
}

} // namespace redlock::bench
