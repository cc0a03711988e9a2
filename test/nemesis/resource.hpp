// SPDX-License-Identifier: BSL-1.0
// A resource that checks fencing tokens by the two rules of docs/fencing.md, and logs each request.
#pragma once

#include "support/control_client.hpp"
#include "support/server.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock::nemesis
{

/// One request, as the resource has logged it.
struct request
{
    bool accepted = false;
    std::uint64_t token = 0;
    std::string owner{};
    bool late = false;                      // Its client knew that it no longer held the lease.
    std::optional<std::uint64_t> written{}; // Empty if it only showed the token, and read.
};

/// A server that compares and writes in one step. It has a unix socket, which no fault reaches.
class checked_resource
{
  public:
    /// Without the comparison, it accepts each request.
    explicit checked_resource(bool compares);

    std::string path() const { return server_.socket_path(); }
    /// Returns the digest of the script that clients call.
    const std::string& script() const { return script_; }
    /// Returns all requests to the resource of this name, in their order.
    std::vector<request> log(const std::string& name);

  private:
    test::server server_;
    std::string script_;
};

/// The connection of one client.
struct resource_access
{
    test::control_client connection;
    std::string script;
};

/// What one holder does with a resource. Its token is shown before it reads.
class visit
{
  public:
    visit(resource_access& by, std::string name, std::uint64_t token, std::string owner, bool late);

    /// Writes the successor of the number that it has read or written last. Does nothing after a refusal.
    void write(bool late);

  private:
    void send(bool late, std::optional<std::uint64_t> value);

    resource_access& by_;
    std::string name_;
    std::string token_;
    std::string owner_;
    std::optional<std::uint64_t> value_{}; // Empty after a refusal.
};

/// Accepted writes that are stale, in the midst of those of another lease, or overwrite what their holder hasn't seen,
/// in words.
std::vector<std::string> wrong_writes(const std::vector<request>& log);

} // namespace redlock::nemesis
