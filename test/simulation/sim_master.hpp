// SPDX-License-Identifier: BSL-1.0
// A simulated master. It behaves like a real server on virtual time, unless the test scripts its answers.
#pragma once

#include "master_store.hpp"
#include "reply_value.hpp"
#include "support/request_reader.hpp"
#include "virtual_link.hpp"
#include "virtual_world.hpp"

#include <redlock/clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

/// What happens to new connections.
enum class entrance : std::uint8_t
{
    open,    // Accepted.
    refuses, // Refused.
    silent,  // No answer.
    crowded  // Accepted, answered with "max number of clients reached", and closed.
};

/// An answer that replaces the usual one.
struct scripted_answer
{
    /// Sent as they are. Empty for the answer of the command, or for no answer if the command doesn't run.
    std::string bytes{};
    bool runs = false;     // Executes the command nevertheless.
    bool closes = false;   // Closes the connection after the answer.
    bool nonsense = false; // No real server gives this answer.
};

/// A received command.
struct received
{
    clock::time_point at;
    std::int64_t connection; // Its client id.
    std::string what;        // "SET", "ask", "extend", "release", "CLIENT KILL": see `what_of`.
    command words;
    bool ran;
};

/// A message that a master has sent to the subscribers of a channel.
struct publication
{
    std::string channel;
    std::string message;
    std::int64_t receivers;
};

/// Classifies a command: its name, for CLIENT and SCRIPT with the second word, for a script of the library its purpose.
std::string what_of(const command& words);

struct script_arguments;

class sim_master
{
  public:
    sim_master(virtual_world& world, std::string its_run_id);
    sim_master(const sim_master&) = delete;
    sim_master& operator=(const sim_master&) = delete;

    // ---- Properties. Set them before the first connection.
    std::string run_id;
    std::string replication_id; // `master_replid`. Another one after each start and each promotion.
    bool knows_hello = true;
    bool tells_run_id = true;
    std::string username = "default"; // The only user.
    std::string password{};
    std::string role = "master";
    std::string mode = "standalone";
    std::string version = "7.0.15";
    std::string maxmemory_policy = "noeviction";
    persistence on_disk = persistence::always;
    clock::duration unflushed = std::chrono::seconds{1}; // What `everysec` loses.
    /// Commands that it never runs, by kind (`what_of`) or name, each with its error reply.
    std::map<std::string, std::string> habits;
    /// Databases that exist and that its user may not select, as with the permissions of Valkey 9.
    std::set<std::size_t> hidden_databases;
    /// How long it waits for its disk after each write, before it sends the reply and reads on.
    clock::duration fsync{};
    /// The clock by which keys expire and that TIME returns: that of the world, unless the test changes it.
    process_clock& clock_of_its_own() noexcept { return keys_.clock_of_its_own; }

    // ---- The network.
    latency network{};
    entrance door = entrance::open;
    bool takes_bytes = true; // False: writes stay pending, as with a full socket buffer.
    /// Ends `cut_there`, `cut_back` and `cut_off`, and takes bytes again.
    void heal();
    /// All connections that the client hasn't closed, or with data still under way.
    std::vector<std::shared_ptr<virtual_link>> links();
    /// The connection with this client id, or the newest.
    virtual_link& link(std::int64_t id);
    virtual_link& link();
    /// The number of clients.
    std::size_t clients() const noexcept { return clients_.size(); }

    // ---- Behaviour.
    /// Does nothing until `resume`, as with SIGSTOP: connections and bytes pile up.
    void hang() noexcept { hung_ = true; }
    void resume();
    /// Returns true while replies wait for the disk.
    bool waits_for_disk() const noexcept { return !unsent_.empty(); }
    /// Answers the next `times` commands of a kind (`what_of`; "*" for any) with this.
    void answer(const std::string& what, scripted_answer with, std::size_t times = 1);
    /// Answers all commands of a kind with these bytes and doesn't run them, until `answer_as_usual`.
    void refuse(const std::string& what, std::string bytes);
    void answer_as_usual();
    /// Closes all connections and restarts with the keys that are on disk. Client ids start again.
    void restart(const std::string& new_run_id);
    void restart(const std::string& new_run_id, bool keeps_keys);
    /// Replaces the master by a replica that lags by `behind`: all connections are closed, the last writes are lost.
    void promote_stale_replica(const std::string& new_run_id, clock::duration behind);
    /// Demotes and promotes the master without closing connections: the writes of `last` are lost.
    void lose_writes_of(clock::duration last);
    /// Restores the server of the past. It doesn't notice, as if its machine was put back to a copy of the memory.
    void put_back(clock::duration by);
    void flush_all()
    {
        keys_.flush();
        may_have_lost();
    }
    void swap_databases(std::size_t one, std::size_t other)
    {
        keys_.swap(one, other);
        std::swap(contents_.at(one), contents_.at(other));
        for (const std::size_t database : {one, other})
        {
            auto& entered = contents_.at(database).entered.at(database);
            entered = entered.value_or(world_.now());
        }
    }
    /// No loss of writes reaches beyond the present state.
    void keep_present_state() noexcept { keys_.forget_changes(); }
    /// Changes the hints of a client's commands by this, in microseconds, as if it had another clock.
    void change_hints(int of, std::int64_t by) { changed_hints_ = {of, by}; }
    /// Evicts one of the keys. Returns false if there is none.
    bool evict(std::size_t which) { return keys_.evict(which); }
    void flush_scripts() { scripts_.clear(); }
    /// Resets all connections at the clients' ends; what the clients sent arrives.
    void break_connections();

    // ---- State.
    /// Selects the database of the functions below, and of an eviction. 0 unless it is called.
    void show_database(std::size_t which);
    /// The time by the master's clock.
    clock::time_point now() const noexcept { return keys_.now(); }
    /// All keys with their values, without the queues.
    std::vector<std::pair<std::string, std::string>> contents();
    std::optional<std::string> value(const std::string& key);
    /// When the key expires, in whole milliseconds of the master's clock; empty without an expiry or without the key.
    std::optional<clock::time_point> expiry(const std::string& key);
    void set(const std::string& key, const std::string& value, std::optional<clock::duration> ttl = {});
    /// Sets a key of another type, as other lock libraries do.
    void set_hash(const std::string& key);
    /// Sets a field of a hash, which is created if there is none.
    void set_field(const std::string& key, const std::string& field, const std::string& value);
    std::optional<std::string> field(const std::string& key, const std::string& name);
    void remove(const std::string& key) { keys_.remove(key); }
    /// Removes the key if it is still of another type.
    void remove_hash(const std::string& key)
    {
        if (has_other_type(key))
        {
            remove(key);
        }
    }
    std::size_t key_count() { return contents().size(); }
    /// When it may have lost keys last, without regard to single keys: it was started, promoted, flushed, or had its
    /// databases swapped. Empty if it wasn't since it was made. A database that is swapped back has lost nothing.
    std::optional<clock::time_point> last_loss() const
    {
        const content_history& shown = contents_.at(shown_);
        return shown.home == shown_ ? shown.lost : std::max(shown.lost, shown.entered.at(shown_));
    }
    /// How often it has lost keys other than by commands and their ttl.
    std::size_t losses() const noexcept { return keys_.losses(); }
    /// Whether the queue of a key has this member.
    bool has_queued(const std::string& key, const std::string& member);
    /// The number of keys that are parts of queues.
    std::size_t queue_key_count() { return keys_.contents().size() - key_count(); }

    // ---- Received commands.
    const std::vector<received>& log() const noexcept { return log_; }
    /// The number of received commands of a kind.
    std::size_t count(std::string_view what) const;
    /// The last command of a kind. Throws if there is none.
    const received& last(std::string_view what) const;
    void forget_log() { log_.clear(); }
    /// The messages of the command that was executed last.
    const std::vector<publication>& published() const noexcept { return published_; }
    /// Called with each command and its reply. If set, no log is kept.
    std::function<void(
        const client_state& from, const std::string& what, const command& words, const std::string& reply)>
        witness{};
    /// Called with the bytes that a process sends, whether or not they arrive. `late`: they may have waited for room.
    std::function<void(int process, std::string_view bytes, bool late)> on_sent{};
    /// Called when a client closes a connection, with the time for which it has been owed a reply, or room for more bytes, as far
    /// as it can know.
    std::function<void(int process, clock::duration silence)> on_left{};
    /// Tells whether a process is suspended, so that it can't read what arrives. If it isn't set, none is.
    std::function<bool(int process)> is_suspended{};

    // ---- Called by the network.
    void on_link(const std::shared_ptr<virtual_link>& fresh);
    void on_arrival(std::shared_ptr<virtual_link> who);
    void on_bytes(virtual_link& from, std::string_view bytes);
    void on_end(virtual_link& from);

  private:
    /// What has happened to the contents of a database. Times are true.
    struct content_history
    {
        std::size_t home = 0; // Its database at first.
        std::optional<clock::time_point> lost{};
        std::array<std::optional<clock::time_point>, master_store::databases>
            entered{}; // Each database, first.
    };

    static std::array<content_history, master_store::databases> first_contents()
    {
        std::array<content_history, master_store::databases> all{};
        for (std::size_t database = 0; database < all.size(); ++database)
        {
            all.at(database).home = database;
        }
        return all;
    }
    void serve(virtual_link& who);
    void execute(virtual_link& from, command words);
    std::optional<scripted_answer>
    scripted(const client_state& from, const std::string& what, const command& words);
    void wait_for_disk(virtual_link& from, std::string bytes);
    void start_anew(const std::string& new_run_id);

    // Each answers one command.
    std::string run(client_state& from, const std::string& what, const command& words);
    std::string hello(client_state& who, const command& words) const;
    std::string log_in(client_state& who, const command& words) const;
    std::string swap_databases(const client_state& from, const command& words);
    std::string flush_all(const client_state& from, const command& words);
    std::string load_script(const client_state& from, const command& words);
    std::string forget_scripts(const client_state& from, const command& words);
    std::string kill(const client_state& from, const command& words);
    std::string keyspace_text() const;
    std::string info_text(const command& words) const;
    std::string info(const client_state& who, const command& words) const;
    std::string choose_database(const std::string& word, std::size_t& chosen) const;
    reply_value select_in_script(const command& words);
    void draw_replication_id();
    void may_have_lost() noexcept
    {
        for (content_history& each : contents_)
        {
            each.lost = world_.now();
        }
    }
    std::string script(const client_state& from, const command& words);
    reply_value run_for_script(const command& words);
    bool has_other_type(const std::string& key);
    std::string subscribe(client_state& who, const command& words) const;
    std::int64_t publish(const std::string& channel, const std::string& message);
    bool lets_in(client_state& who, std::string_view user, std::string_view given) const;

    virtual_world& world_;
    master_store keys_;
    std::size_t shown_ = 0; // The database of the state functions.
    std::size_t promotions_ = 0;
    std::vector<std::pair<clock::time_point, std::string>> replication_ids_;           // All so far.
    std::optional<std::pair<int, std::int64_t>> changed_hints_;                        // Of a process.
    std::array<content_history, master_store::databases> contents_ = first_contents(); // By database.
    bool hung_ = false;
    std::vector<std::pair<std::shared_ptr<virtual_link>, std::string>>
        unsent_; // Replies that wait for the disk.
    std::int64_t last_id_ = 0;
    std::vector<std::shared_ptr<virtual_link>> arrived_; // While it hung.
    std::map<std::int64_t, std::shared_ptr<virtual_link>> clients_;
    std::vector<std::weak_ptr<virtual_link>> links_;
    std::map<std::string, std::deque<scripted_answer>> answers_;
    std::map<std::string, std::string> refusals_;
    std::map<std::string, std::string> scripts_;
    std::vector<std::pair<std::shared_ptr<virtual_link>, std::string>> pushes_; // Of the present command.
    std::vector<publication> published_;
    std::vector<received> log_;
};

} // namespace redlock::test
