// SPDX-License-Identifier: BSL-1.0
// What the reference clients say to the masters, and what they make of the replies.
#include "harness/reference_protocol.hpp"

#include "support/control_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/random.h>

namespace redlock::bench
{

namespace
{

constexpr std::size_t owner_id_length = 32;
constexpr std::string_view release_script =
    R"lua(if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0)lua";

std::string formatted(std::initializer_list<std::string_view> words)
{
    std::string command = fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words)
    {
        command += fmt::format("${}\r\n{}\r\n", word.size(), word);
    }
    return command;
}

} // namespace

conversation::conversation(std::span<const int> ports, std::string_view kind)
    : kind_{kind}, masters_(ports.size())
{
    for (const int port : ports)
    {
        digest_ = test::control_client::to_port(port).command({"SCRIPT", "LOAD", release_script}).text;
    }
}

void conversation::add_workers(std::size_t count)
{
    const std::string owner(owner_id_length, '#');
    while (workers_.size() < count)
    {
        worker& added = workers_.emplace_back();
        const std::string key = std::string{key_prefix} + resource_of(kind_, workers_.size());
        added.acquire = formatted({"SET", key, owner, "NX", "PX", std::to_string(ttl.count())});
        added.release = formatted({"EVALSHA", digest_, "1", key, owner});
        added.owner_in_acquire = added.acquire.find(owner);
        added.owner_in_release = added.release.find(owner);
    }
    for (exchange& each : masters_)
    {
        // A command for each worker, and what the minority still owes of the one before.
        each.unanswered.resize(std::max(each.unanswered.size(), 4 * workers_.size()));
    }
}

void conversation::begin(const work& what, stopwatch& watch)
{
    add_workers(what.workers);
    for (worker& each : std::span{workers_}.first(what.workers))
    {
        each.asked = {};
        begin_pair(each, watch);
    }
}

void conversation::begin_pair(worker& by, stopwatch& watch)
{
    if (!watch.begin_pair(by.asked))
    {
        return;
    }
    std::array<unsigned char, owner_id_length / 2> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    char* out = by.acquire.data() + by.owner_in_acquire;
    for (const unsigned value : random)
    {
        *out++ = "0123456789abcdef"[value >> 4U];
        *out++ = "0123456789abcdef"[value & 15U];
    }
    std::memcpy(
        by.release.data() + by.owner_in_release, by.acquire.data() + by.owner_in_acquire, owner_id_length);
    by.acquiring = true;
    ask(by, by.acquire);
}

void conversation::ask(worker& by, const std::string& command)
{
    ++by.command;
    by.votes = 0;
    const auto number = static_cast<std::uint32_t>(&by - workers_.data());
    for (exchange& each : masters_)
    {
        each.output += command;
        if (each.count == each.unanswered.size())
        {
            std::rotate(
                each.unanswered.begin(), each.unanswered.begin() + static_cast<std::ptrdiff_t>(each.oldest),
                each.unanswered.end());
            each.oldest = 0;
            each.unanswered.resize(2 * each.count);
        }
        each.unanswered[(each.oldest + each.count++) % each.unanswered.size()] = {number, by.command};
        ++unanswered_;
    }
}

void conversation::on_majority(worker& by, stopwatch& watch)
{
    if (std::exchange(by.acquiring, false))
    {
        watch.end_acquire(by.asked);
        ask(by, by.release);
    }
    else
    {
        begin_pair(by, watch);
    }
}

/// Every reply is one line: "+OK", ":1".
void conversation::take_replies(std::size_t from, std::string_view bytes, stopwatch& watch)
{
    exchange& said = masters_[from];
    for (const char byte : bytes)
    {
        if (said.first == '\0')
        {
            said.first = byte;
            if (byte != '+' && byte != ':')
            {
                throw std::runtime_error{"a master refused a command of a reference"};
            }
        }
        if (byte == '\n')
        {
            said.first = '\0';
            on_reply(said, watch);
        }
    }
}

void conversation::on_reply(exchange& from, stopwatch& watch)
{
    const question answered = from.unanswered[from.oldest];
    from.oldest = (from.oldest + 1) % from.unanswered.size();
    --from.count;
    --unanswered_;
    worker& by = workers_[answered.worker];
    if (answered.command == by.command && ++by.votes == masters_.size() / 2 + 1)
    {
        on_majority(by, watch);
    }
}

} // namespace redlock::bench
