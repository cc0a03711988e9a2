// SPDX-License-Identifier: BSL-1.0
// The kind of servers that the tests of this process use. The same tests pass in each of these worlds.
#pragma once

#include "certificates.hpp"

#include <string>
#include <vector>

namespace redlock::test
{

/// The words in the environment variable REDLOCK_TEST_SERVERS. By default: Redis over TCP, with the default user and no
/// password.
struct world
{
    bool valkey = false;       ///< "valkey": valkey-server instead of redis-server.
    bool unix_sockets = false; ///< "unix": unix sockets; in combination with "tls", every second server.
    bool tls = false;          ///< "tls": TLS ports, with certificates that this process has created.
    bool least_acl = false;    ///< "acl": clients use the documented user.
};

/// Returns the world of this process. Throws for unknown words.
const world& this_world();

/// Returns the program of a server: the path in the environment variable REDLOCK_TEST_REDIS for "redis-server", in
/// REDLOCK_TEST_VALKEY for "valkey-server"; if that isn't set, and for all other names, the name itself. Throws if the
/// variable names no program, so that a test never passes with a server other than the requested one.
std::string program_of(const std::string& name);

/// The TLS files of a server of this process, and the CA file for its clients. Created at the first call.
struct world_certificates
{
    certificate_files server;
    std::string ca_file;
};
const world_certificates& certificates_of_world();

/// Returns the arguments of ACL SETUSER in the documentation: the user and its rules, with this password.
std::vector<std::string> documented_user(const std::string& password);

/// Returns the documented configuration of a master, unchanged: lines, each with its line end.
std::string documented_configuration();

/// Returns the documented lines to paste into a running server, unchanged.
std::string documented_lines_to_paste();

/// The name of the documented user.
inline constexpr const char* documented_user_name = "locker";

} // namespace redlock::test
