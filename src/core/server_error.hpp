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
    none,             // It is no error.
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
    wrong_type,       // WRONGTYPE: the key has another type than a lock's, so it isn't ours.
    unknown_command,  // "unknown command": it was renamed away, or never existed.
    other             // Anything else; the command may have run.
};

server_error classify(std::string_view reply) noexcept;

/// Whether a SET that was answered with this error cannot have written its key.
bool rules_out_a_key(server_error error) noexcept;

/// What becomes of a release that was answered with this error.
enum class release_after : std::uint8_t
{
    again,          // A temporary refusal: the key stays outstanding, and the release is repeated.
    again_at_first, // Unknown: repeated, unless the master has refused several times in a row.
    given_up,       // A permanent refusal: the ttl frees the key.
    reconnect,      // As given_up; and the server is no longer what it was, so the connection is closed.
};

release_after after_error(server_error error) noexcept;

} // namespace redlock::core
