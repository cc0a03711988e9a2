// SPDX-License-Identifier: BSL-1.0
// The commands of the reference clients, and the evaluation of the replies.
#include "harness/reference_clients.hpp"

#include "support/control_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
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

} // namespace

reference_protocol::reference_protocol(std::span<const int> ports, std::string_view kind)
    : kind_{kind}, masters_(ports.size())
{
    for (const int port : ports)
    {
        digest_ = test::control_client::to_port(port).command({"SCRIPT", "LOAD", release_script}).text;
    }
}

void reference_protocol::add_workers(std::size_t count)
{
    const std::string owner(owner_id_length, '#');
    while (workers_.size() < count)
    {
        worker& added = workers_.emplace_back();
        const std::string key = std::string{key_prefix} + resource_of(kind_, workers_.size());
        added.acquire = test::on_the_wire({"SET", key, owner, "NX", "PX", std::to_string(ttl.count())});
        added.release = test::on_the_wire({"EVALSHA", digest_, "1", key, owner});
        added.owner_in_acquire = added.acquire.find(owner);
        added.owner_in_release = added.release.find(owner);
    }
    for (master_state& each : masters_)
    {
        // One command per worker, and replies to the previous one that the minority hasn't sent.
        each.unanswered.set_capacity(std::max(each.unanswered.capacity(), 4 * workers_.size()));
    }
}

void reference_protocol::start(const workload& load, stopwatch& watch)
{
    add_workers(load.workers);
    for (worker& each : std::span{workers_}.first(load.workers))
    {
        each.started = {};
        begin_pair(each, watch);
    }
}

void reference_protocol::begin_pair(worker& sender, stopwatch& watch)
{
    if (!watch.begin_pair(sender.started))
    {
        return;
    }
    std::array<unsigned char, owner_id_length / 2> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    {
        throw std::system_error{errno, std::generic_category(), "getrandom"};
    }
    char* out = sender.acquire.data() + sender.owner_in_acquire;
    for (const unsigned value : random)
    {
        *out++ = "0123456789abcdef"[value >> 4U];
        *out++ = "0123456789abcdef"[value & 15U];
    }
    std::memcpy(
        sender.release.data() + sender.owner_in_release, sender.acquire.data() + sender.owner_in_acquire,
        owner_id_length);
    sender.acquiring = true;
    broadcast(sender, sender.acquire);
}

void reference_protocol::broadcast(worker& sender, const std::string& command)
{
    ++sender.command;
    sender.votes = 0;
    const auto number = static_cast<std::uint32_t>(&sender - workers_.data());
    for (master_state& each : masters_)
    {
        each.output += command;
        if (each.unanswered.full())
        {
            each.unanswered.set_capacity(2 * each.unanswered.capacity());
        }
        each.unanswered.push_back({number, sender.command});
        ++unanswered_;
    }
}

void reference_protocol::on_majority(worker& sender, stopwatch& watch)
{
    if (std::exchange(sender.acquiring, false))
    {
        watch.end_acquire(sender.started);
        broadcast(sender, sender.release);
    }
    else
    {
        begin_pair(sender, watch);
    }
}

/// Every reply is one line: "+OK" or ":1".
void reference_protocol::receive(std::size_t from, std::string_view bytes, stopwatch& watch)
{
    master_state& state = masters_[from];
    for (const char byte : bytes)
    {
        if (state.first_byte == '\0')
        {
            state.first_byte = byte;
            if (byte != '+' && byte != ':')
            {
                throw std::runtime_error{"a master refused a command of a reference client"};
            }
        }
        if (byte == '\n')
        {
            state.first_byte = '\0';
            on_reply(state, watch);
        }
    }
}

void reference_protocol::on_reply(master_state& from, stopwatch& watch)
{
    const sent_command answered = from.unanswered.front();
    from.unanswered.pop_front();
    --unanswered_;
    worker& sender = workers_[answered.worker];
    if (answered.command == sender.command && ++sender.votes == masters_.size() / 2 + 1)
    {
        on_majority(sender, watch);
    }
}

} // namespace redlock::bench
