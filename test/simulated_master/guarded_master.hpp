// SPDX-License-Identifier: BSL-1.0
// A real server as a master of a guarded group.
#pragma once

#include "core/marker.hpp"
#include "net/command.hpp"
#include "support/server.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Returns the present replication id of a server.
std::string replication_id_of(server& of);

/// Returns the clock of a server in microseconds.
std::int64_t time_of(server& of);

/// Runs a script on a server by its digest, which has to be the recorded one.
reply run_script(
    server& at, const net::script& what, const std::vector<std::string_view>& keys,
    const std::vector<std::string_view>& arguments);

/// The arguments of a question of a waiting client, beside its member and its owner id. The times of the queue are in
/// milliseconds, and longer than any test.
struct guarded_question
{
    std::string_view waited = "0";
    std::string_view liveness = "3600000"; // "0": not to be entered in the queue.
    std::int64_t hint = 0;
    std::string latest = {}; // Empty: `guarded_master::later`.
};

/// A master that is armed, and the commands of guarded mode to it.
class guarded_master
{
  public:
    explicit guarded_master(std::int64_t floor = 1000) { arm(floor); }

    server& at() { return server_; }
    /// Returns a marker of its group, for its present incarnation.
    core::marker marker_with(core::marker_state state);
    /// Returns the marker that it has.
    std::string marker() { return server_.command({"GET", guard}).text; }

    /// Writes what arming writes.
    void arm(std::int64_t floor);

    /// A time by its clock that is far enough ahead for any test.
    std::string later() { return std::to_string(time_of(server_) + minute); }
    /// A time by its clock that has passed.
    std::string before_now() { return std::to_string(time_of(server_) - 1); }
    reply acquire(std::string_view owner, std::string_view slot = "7", std::int64_t hint = 0)
    {
        return acquire_at(server_, owner, slot, hint, later());
    }
    reply acquire_at(
        server& there, std::string_view owner, std::string_view slot, std::int64_t hint,
        const std::string& latest);
    reply raise(std::string_view owner, std::int64_t token, std::string_view slot = "7");
    /// Asks for the resource as a waiting client does.
    reply ask(std::string_view member, std::string_view owner, const guarded_question& how = {});
    reply extend(
        std::string_view owner, std::string_view ttl,
        std::string_view beginning = "redlock 1 0123456789abcdef ");

    reply counter(std::string_view slot = "7") { return server_.command({"HGET", fence, slot}); }
    reply holder() { return server_.command({"GET", key}); }
    /// Returns the time to live of the resource's key in milliseconds.
    std::int64_t left() { return server_.command({"PTTL", key}).integer; }
    /// Returns the clients in the queue of the resource.
    std::vector<std::string> queue();
    /// Returns all keys with their values, without their expiry, to see that nothing has changed.
    std::vector<std::string> contents();

    static constexpr const char* key = "lock:stock";
    static constexpr const char* order = "redlock-queue:order:lock:stock";
    static constexpr const char* alive = "redlock-queue:alive:lock:stock";
    static constexpr const char* members = "lock::redlock-members";
    static constexpr const char* guard = "lock::redlock-guard";
    static constexpr const char* fence = "lock::redlock-fence";
    /// No counter is this large.
    static constexpr std::int64_t end_of_numbers = std::int64_t{1} << 53;
    static constexpr std::int64_t minute = 60'000'000;
    static constexpr std::int64_t hour = 60 * minute;

  private:
    server server_{server_options::plain()};
    std::string marker_;
};

} // namespace redlock::test
