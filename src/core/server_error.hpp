// SPDX-License-Identifier: BSL-1.0
// The meaning of a server's error replies for a lock.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::core
{

/// The kinds of error replies, recognised by the beginning of the text.
enum class server_error : std::uint8_t
{
    none,             // Not an error.
    no_script,        // NOSCRIPT: the server doesn't know the script; the command did not run.
    loading,          // LOADING: the server is loading its data from disk.
    busy,             // BUSY: a slow script is running.
    read_only,        // READONLY, MASTERDOWN: the server is a replica.
    no_replicas,      // NOREPLICAS: too few replicas are connected; all writes are refused.
    misconfigured,    // MISCONF: the server can't save its data; all writes are refused.
    out_of_memory,    // OOM: maxmemory is reached; new keys are refused.
    authentication,   // NOAUTH, WRONGPASS: the password is missing or wrong.
    no_permission,    // NOPERM: the ACL forbids the command.
    too_many_clients, // "max number of clients reached".
    cluster,          // MOVED, ASK, CLUSTERDOWN, CROSSSLOT, TRYAGAIN: a node of a Redis Cluster.
    wrong_type,       // WRONGTYPE: the key has another type, so it is not one of our locks.
    unknown_command,  // "unknown command": the server doesn't have the command, or it was renamed.
    other             // Any other error; the command may have run.
};

/// Returns the kind of an error reply.
server_error classify(std::string_view reply) noexcept;

/// Returns whether a command was refused because the user may not use a key that it names: not the command itself, a channel, or
/// what a script does. The words are those of Redis 6 to 7.0, and of Redis since 7.2 and Valkey.
bool is_about_key(std::string_view reply) noexcept;

/// Returns whether a script was refused a command whatever its key: the server doesn't have it, or the user may not run it.
/// Redis 6 puts the place in the script before these words.
bool forbids_command(std::string_view refusal) noexcept;

/// Returns whether an error without a code of its own is about the user or the password: "ERR invalid password",
/// "ERR Client sent AUTH, but no password is set".
bool is_about_log_in(std::string_view reply);

/// Returns whether a SET that was answered with this error cannot have written its key.
bool rules_out_a_key(server_error error) noexcept;

/// The consequence of an error reply to a release.
enum class release_after : std::uint8_t
{
    again,          // A temporary refusal: the key stays outstanding, and the release is repeated.
    again_at_first, // An unknown error: repeated, unless the master has refused several times in a row.
    given_up,       // A permanent refusal: the release ends, and the ttl frees the key.
    reconnect,      // As given_up; the connection is closed too, as the server no longer is a master.
};

/// Returns the consequence of an error reply to a release.
release_after after_error(server_error error) noexcept;

} // namespace redlock::core
