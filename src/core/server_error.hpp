// SPDX-License-Identifier: BSL-1.0
// What a server's error replies mean for a lock.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::core
{

/// The errors that are told apart, by the first word of the reply.
enum class server_error : std::uint8_t
{
    no_script,        // NOSCRIPT: it doesn't know the script; the command did not run.
    loading,          // LOADING: it reads its data from disk; soon over.
    busy,             // BUSY: a slow script runs; over some time.
    read_only,        // READONLY, MASTERDOWN: it isn't a master, or not any more.
    no_replicas,      // NOREPLICAS: too few replicas follow; nothing is written, not even a release.
    misconfigured,    // MISCONF: it can't save; nothing is written.
    out_of_memory,    // OOM: nothing new is stored.
    authentication,   // NOAUTH, WRONGPASS: we aren't let in.
    no_permission,    // NOPERM: the ACL forbids this command.
    too_many_clients, // "max number of clients reached".
    cluster,          // MOVED, ASK, CLUSTERDOWN, CROSSSLOT, TRYAGAIN: a node of a Redis Cluster.
    other             // Anything else; the command may have run.
};

server_error classify(std::string_view reply) noexcept;

/// What becomes of a release that was answered with this error.
enum class release_after : std::uint8_t
{
    again,     // It is still owed, and asked for again.
    given_up,  // Asking again doesn't help: the ttl frees the key.
    reconnect, // As given_up; and the server isn't what it was, so the connection is made anew.
};

release_after after_error(server_error error) noexcept;

} // namespace redlock::core
