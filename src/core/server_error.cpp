// SPDX-License-Identifier: BSL-1.0
// The meaning of a server's error replies for a lock.
#include "core/server_error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace redlock::core
{

namespace
{

constexpr std::array<std::pair<std::string_view, server_error>, 17> error_words{{
    {"NOSCRIPT", server_error::no_script},
    {"LOADING", server_error::loading},
    {"BUSY", server_error::busy},
    {"READONLY", server_error::read_only},
    {"MASTERDOWN", server_error::read_only},
    {"NOREPLICAS", server_error::no_replicas},
    {"MISCONF", server_error::misconfigured},
    {"OOM", server_error::out_of_memory},
    {"NOAUTH", server_error::authentication},
    {"WRONGPASS", server_error::authentication},
    {"NOPERM", server_error::no_permission},
    {"MOVED", server_error::cluster},
    {"ASK", server_error::cluster},
    {"CLUSTERDOWN", server_error::cluster},
    {"CROSSSLOT", server_error::cluster},
    {"TRYAGAIN", server_error::cluster},
    {"WRONGTYPE", server_error::wrong_type},
}};

} // namespace

server_error classify(std::string_view reply) noexcept
{
    const std::string_view first = reply.substr(0, reply.find(' '));
    for (const auto& [word, error] : error_words)
    {
        if (first == word)
        {
            return error;
        }
    }
    if (reply.starts_with("ERR max number of clients reached"))
    {
        return server_error::too_many_clients;
    }
    if (reply.starts_with("ERR unknown command"))
    {
        return server_error::unknown_command;
    }
    // ACL violations within a script have no error code. The texts of Redis 7.0, and of Redis 7.2 and Valkey:
    if (reply.starts_with("ERR The user executing the script can't ") ||
        reply.starts_with("ERR ACL failure in script"))
    {
        return server_error::no_permission;
    }
    return server_error::other;
}

bool is_about_key(std::string_view reply) noexcept
{
    return reply.starts_with("NOPERM ") && (reply.ends_with(" access one of the keys used as arguments") ||
                                            reply.ends_with(" permissions to access a key"));
}

bool forbids_command(std::string_view refusal) noexcept
{
    // An unknown command: since Redis 7.2 and Valkey, and before. A forbidden one: the same.
    constexpr std::array<std::string_view, 4> words{
        "Unknown command called from ", "Unknown Redis command called from ", " permissions to run the '",
        " can't run this command"};
    return std::any_of(
        words.begin(), words.end(),
        [&](std::string_view each) { return refusal.find(each) != std::string_view::npos; });
}

bool is_about_log_in(std::string_view reply)
{
    std::string text{reply};
    std::transform(
        text.begin(), text.end(), text.begin(),
        [](char each) { return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each; });
    return text.starts_with("err ") &&
           (text.find("auth") != std::string::npos || text.find("password") != std::string::npos);
}

bool rules_out_a_key(server_error error) noexcept
{
    return error != server_error::none && error != server_error::other;
}

release_after after_error(server_error error) noexcept
{
    switch (error)
    {
    case server_error::read_only:
    case server_error::cluster:
        return release_after::reconnect;
    case server_error::no_replicas:
    case server_error::misconfigured:
    case server_error::authentication:
    case server_error::no_permission:
    case server_error::wrong_type:
    case server_error::unknown_command:
        return release_after::given_up;
    case server_error::no_script: // The full script was refused as well, or there was no room to send it.
    case server_error::other:
        return release_after::again_at_first;
    case server_error::none:
    case server_error::loading:
    case server_error::busy:
    case server_error::out_of_memory:
    case server_error::too_many_clients:
        break;
    }
    return release_after::again;
}

} // namespace redlock::core
