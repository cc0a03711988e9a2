// SPDX-License-Identifier: BSL-1.0
// What kind of servers the tests of this process run on: the same suite passes in each of these worlds.
#pragma once

#include "certificates.hpp"

#include <string>
#include <vector>

namespace redlock::test
{

/// What the words in the environment variable REDLOCK_TEST_SERVERS ask for. Without any: Redis over TCP, and its
/// default user without a password.
struct world
{
    bool valkey = false;       ///< "valkey": valkey-server instead of redis-server.
    bool unix_sockets = false; ///< "unix": unix sockets; with "tls" as well, every second server.
    bool tls = false;          ///< "tls": ports that speak TLS, with certificates that this process has made.
    bool least_acl = false;    ///< "acl": clients are the user whom the documentation tells to make.
};

/// The world of this process. Throws for words that it doesn't know.
const world& this_world();

/// What is run for a server's name: the path in the environment variable REDLOCK_TEST_REDIS for "redis-server", in
/// REDLOCK_TEST_VALKEY for "valkey-server"; if that isn't set, and for all other names, the name itself. Throws if the
/// variable names no program: a test must not pass on another server than the one that was asked for.
std::string program_of(const std::string& name);

/// What a server of this process needs for TLS, and what a client needs to trust it. Made at the first call.
struct world_certificates
{
    certificate_files server;
    std::string ca_file;
};
const world_certificates& certificates_of_world();

/// The words behind ACL SETUSER in the documentation: the user, then what it may do, with this password.
std::vector<std::string> documented_user(const std::string& password);

/// The configuration of a master in the documentation, as it stands: lines, each with its end.
std::string documented_configuration();

/// The lines that are to be pasted into a server that runs, as they stand.
std::string documented_lines_to_paste();

/// The name of that user.
inline constexpr const char* documented_user_name = "locker";

} // namespace redlock::test
