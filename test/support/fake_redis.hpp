// SPDX-License-Identifier: BSL-1.0
// The answers of a well-behaved scripted server: as much of a Redis master as a lock client needs.
#pragma once

#include "session.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace redlock::test
{

/// The properties that a master reports.
struct honest_options
{
    /// 40 hexadecimal digits; random if empty.
    std::string run_id = {};
    /// The password for AUTH, with the user "default" or none; empty for none.
    std::string password = {};
    /// Supports HELLO, and with it RESP3.
    bool knows_hello = true;
    /// "master" or "slave".
    std::string role = "master";
    /// "standalone", "cluster" or "sentinel".
    std::string mode = "standalone";
    /// The answer to CONFIG GET maxmemory-policy.
    std::string maxmemory_policy = "noeviction";
};

/// The state of a master, shared by all its connections. Thread-safe.
class fake_redis
{
  public:
    /// A client of the master.
    struct client
    {
        std::int64_t id = 0;
        int protocol = 2;
        bool authenticated = false;
        int database = 0;
        std::string name = {};
        std::string channel{}; // That it has subscribed.
    };

    /// The most scripts in the cache.
    static constexpr std::size_t max_scripts = 1000;

    explicit fake_redis(honest_options options = {});

    /// Registers a connection, which gets the next client id. `where` must exist until `leave`.
    client enter(session& where);
    /// Unregisters a connection.
    void leave(const client& who);
    /// Returns the bytes of the answer to a command.
    std::string answer_to(client& who, const command& words);

    /// Returns the value of a key that hasn't expired.
    std::optional<std::string> value(const std::string& key) const;
    /// Sets a key as another client would, without an expiry.
    void set(const std::string& key, const std::string& value);
    /// Removes a key.
    void remove(const std::string& key);
    /// Clears the script cache, as SCRIPT FLUSH does.
    void forget_scripts();
    /// The properties, with the run id filled in.
    const honest_options& options() const { return options_; }

  private:
    using clock = std::chrono::steady_clock;

    struct entry
    {
        std::string value;
        std::optional<clock::time_point> expires_at = {};
    };

    // Each answers one command, with the mutex held.
    std::string hello(client& who, const command& words);
    std::string auth(client& who, const std::string& user, const std::string& password) const;
    std::string client_command(client& who, const command& words);
    std::string info() const;
    static std::string time();
    std::string role() const;
    std::string config(const client& who, const command& words) const;
    std::string script_command(const command& words);
    std::string set_command(const client& who, const command& words);
    std::string eval(const command& words, bool by_name);
    std::string ask(const command& words);
    std::string get(const client& who, const command& words);
    std::string data_command(client& who, const command& words);
    entry* find(const std::string& key);

    mutable std::mutex mutex_;
    honest_options options_;
    std::int64_t last_id_ = 0;
    std::map<std::int64_t, session*> clients_;
    std::map<std::string, entry> keys_;
    std::map<std::string, std::string> scripts_;
};

} // namespace redlock::test
