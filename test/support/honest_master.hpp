// SPDX-License-Identifier: BSL-1.0
// What a scripted server answers when it behaves: as much of a Redis master as a lock client asks for.
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

/// What a master says of itself.
struct honest_options
{
    /// 40 hexadecimal digits; random when empty.
    std::string run_id = {};
    /// What AUTH must bring, with the user "default" or none; empty for none.
    std::string password = {};
    /// Whether it knows HELLO, and with it RESP3.
    bool knows_hello = true;
    /// "master" or "slave".
    std::string role = "master";
    /// "standalone", "cluster" or "sentinel".
    std::string mode = "standalone";
    /// What CONFIG GET maxmemory-policy answers.
    std::string maxmemory_policy = "noeviction";
};

/// One master's state, for all its connections. Every function may be called from any thread.
class honest_master
{
  public:
    /// One client, as the master knows it.
    struct client
    {
        std::int64_t id = 0;
        int protocol = 2;
        bool authenticated = false;
        int database = 0;
        std::string name = {};
    };

    /// How many scripts it keeps.
    static constexpr std::size_t most_scripts = 1000;

    explicit honest_master(honest_options options = {});

    /// Takes in a new connection, which gets the next client id. `where` must stay until `leave`.
    client enter(session& where);
    /// Forgets a connection.
    void leave(const client& who);
    /// The bytes that answer a command.
    std::string answer_to(client& who, const command& words);

    /// The value of a key that hasn't expired.
    std::optional<std::string> value(const std::string& key) const;
    /// Sets a key as another client would, without an expiry.
    void set(const std::string& key, const std::string& value);
    /// Removes a key.
    void remove(const std::string& key);
    /// Forgets the scripts, as SCRIPT FLUSH does.
    void forget_scripts();
    /// What it says of itself, the run id filled in.
    const honest_options& options() const { return options_; }

  private:
    using clock = std::chrono::steady_clock;

    struct entry
    {
        std::string value;
        std::optional<clock::time_point> expires_at = {};
    };

    // Each answers one command; the mutex is held.
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
    std::string turn(const command& words);
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
