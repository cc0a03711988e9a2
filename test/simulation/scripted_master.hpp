// SPDX-License-Identifier: BSL-1.0
// One master of a simulation: it behaves as a real one, on virtual time, unless the test says otherwise.
#pragma once

#include "master_store.hpp"
#include "support/request_reader.hpp"
#include "virtual_link.hpp"
#include "virtual_world.hpp"

#include <redlock/clock.hpp>
#include <redlock/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

/// What becomes of those who want to connect.
enum class entrance : std::uint8_t
{
    open,    // They are let in.
    refuses, // Nobody listens there.
    silent,  // No answer at all.
    crowded  // Let in, told that there are too many clients, and closed.
};

/// How long bytes are under way: drawn anew for each piece, between the delay and delay plus jitter.
struct latency
{
    clock::duration there = std::chrono::microseconds{100};
    clock::duration back = std::chrono::microseconds{100};
    clock::duration jitter{0};
    /// Replies come in pieces of so many bytes at most; 0 for whole.
    std::size_t piece = 0;
    /// A connection is cut when its client sends for so many times, and what it sent then is lost; 0 for none.
    std::size_t breaks_at = 0;
    /// Nothing arrives in this direction any more, until `heal`.
    bool cut_there = false;
    bool cut_back = false;

    clock::duration delay_there(virtual_world& world) const { return there + chance(world); }
    clock::duration delay_back(virtual_world& world) const { return back + chance(world); }

  private:
    clock::duration chance(virtual_world& world) const
    {
        const auto bound = static_cast<std::size_t>(jitter.count()) + 1;
        return clock::duration{static_cast<clock::rep>(bound == 1 ? 0 : world.random_below(bound))};
    }
};

/// An answer that a test wants instead of the usual one.
struct scripted_answer
{
    /// As sent. Empty for what the command answers, or for nothing where it doesn't run.
    std::string bytes{};
    bool runs = false;     // Whether the command is executed all the same.
    bool closes = false;   // Whether the connection is closed behind it.
    bool nonsense = false; // Whether no server would answer that.
};

/// One command that came.
struct received
{
    clock::time_point at;
    std::int64_t connection; // Its client id.
    std::string what;        // "SET", "extend", "release", "CLIENT KILL", "HELLO": see `what_of`.
    command words;
    bool ran;
};

/// What a command is for: of CLIENT and SCRIPT with the second word, of the library's scripts what they do.
std::string what_of(const command& words);

struct script_arguments;

class scripted_master
{
  public:
    scripted_master(virtual_world& world, std::string its_run_id)
        : run_id{std::move(its_run_id)}, world_{world}, keys_{world}
    {
    }
    scripted_master(const scripted_master&) = delete;
    scripted_master& operator=(const scripted_master&) = delete;

    // ---- What it is. Set it before anybody connects.
    std::string run_id;
    bool knows_hello = true;
    bool tells_run_id = true;
    std::string username = "default"; // The one who may log in.
    std::string password{};
    std::string role = "master";
    std::string mode = "standalone";
    std::string version = "7.0.15";
    std::string maxmemory_policy = "noeviction";
    persistence on_disk = persistence::always;
    clock::duration unflushed = std::chrono::seconds{1}; // How much `everysec` loses.
    /// By which keys lapse, and which TIME tells: that of the world, unless the test changes it.
    process_clock& clock_of_its_own() noexcept { return keys_.clock_of_its_own; }

    // ---- The way to it.
    latency network{};
    entrance door = entrance::open;
    bool takes_bytes = true; // Else what is written to it stays unwritten, as with a full socket buffer.
    /// What was cut off goes on, and what wasn't taken is.
    void heal();
    /// All connections whose client hasn't closed them, or which have something on its way yet.
    std::vector<std::shared_ptr<virtual_link>> links();
    /// One connection: by its client id, or the newest.
    virtual_link& link(std::int64_t id);
    virtual_link& link();
    /// How many clients it has.
    std::size_t clients() const noexcept { return clients_.size(); }

    // ---- How it behaves.
    /// Nothing is done until `resume`; connections and bytes pile up. As with SIGSTOP.
    void hang() noexcept { hung_ = true; }
    void resume();
    /// Answers the next commands of a kind (`what_of`; "*" for any) with this, in this order.
    void answer(const std::string& what, scripted_answer with, std::size_t times = 1);
    /// Answers all of a kind with these bytes and doesn't run them; until `answer_as_usual`.
    void refuse(const std::string& what, std::string bytes);
    void answer_as_usual();
    /// Closes all connections and starts anew, with the keys that are on disk. Client ids start anew.
    void restart(const std::string& new_run_id);
    void restart(const std::string& new_run_id, bool keeps_keys);
    /// A replica that is so far behind takes its place: other connections, and keys as they were.
    void promote_stale_replica(const std::string& new_run_id, clock::duration behind);
    /// It is demoted and promoted again behind the same connections: what was written meanwhile is lost.
    void lose_writes_of(clock::duration last) { keys_.go_back_to(world_.now() - last); }
    void flush_all() { keys_.flush(); }
    /// One of its keys goes. False if it has none.
    bool evict(std::size_t which) { return keys_.evict(which); }
    void flush_scripts() { scripts_.clear(); }
    /// All clients see their connections reset; what they sent arrives.
    void break_connections();

    // ---- What it has.
    /// What its clock shows.
    clock::time_point now() const noexcept { return keys_.now(); }
    /// Every key with its value.
    std::vector<std::pair<std::string, std::string>> contents() { return keys_.contents(); }
    std::optional<std::string> value(const std::string& key);
    /// When the key expires, in whole milliseconds of its own clock; nothing for one without an expiry or that isn't
    /// there.
    std::optional<clock::time_point> expiry(const std::string& key);
    void set(const std::string& key, const std::string& value, std::optional<clock::duration> ttl = {});
    /// A key of another type, as other lock libraries use.
    void set_hash(const std::string& key) { keys_.put_hash(key); }
    void remove(const std::string& key) { keys_.remove(key); }
    /// Unless it has become something else since.
    void remove_hash(const std::string& key)
    {
        if (has_other_type(key))
        {
            remove(key);
        }
    }
    /// Lines aside: nobody has to give them back, they lapse.
    std::size_t key_count();

    // ---- What came.
    const std::vector<received>& log() const noexcept { return log_; }
    /// How many commands of a kind came.
    std::size_t count(std::string_view what) const;
    /// The last one of a kind. Only if there is one.
    const received& last(std::string_view what) const;
    void forget_log() { log_.clear(); }
    /// Sees each command and what is replied. With one, no log is kept.
    std::function<void(
        const client_state& from, const std::string& what, const command& words, const std::string& reply)>
        witness{};

    // ---- Called by the network.
    void on_link(const std::shared_ptr<virtual_link>& fresh);
    void on_arrival(std::shared_ptr<virtual_link> who);
    void on_bytes(virtual_link& from, std::string_view bytes);
    void on_end(virtual_link& from);

  private:
    void accept(virtual_link& who);
    void serve(virtual_link& who);
    void execute(virtual_link& from, const command& words);
    std::optional<scripted_answer> scripted(const std::string& what);
    void forget(virtual_link& who);
    void start_anew(const std::string& new_run_id);

    // Each answers one command.
    std::string run(client_state& from, const std::string& what, const command& words);
    std::string hello(client_state& who, const command& words) const;
    std::string log_in(client_state& who, const command& words) const;
    static std::string select(const command& words);
    std::string forget_scripts(const command& words);
    std::string kill(const client_state& from, const command& words);
    std::string time() const;
    std::string info(const client_state& who, const command& words) const;
    std::string set_key(const client_state& from, const command& words);
    std::string script(const client_state& from, const command& words);
    bool has_other_type(const std::string& key);
    std::string inspect(const client_state& from, const std::string& key);
    std::string release(const script_arguments& given);
    std::string extend(const script_arguments& given, const std::string& digest);
    std::string turn(const script_arguments& given);
    bool lets_in(client_state& who, std::string_view user, std::string_view given) const;

    virtual_world& world_;
    master_store keys_;
    bool hung_ = false;
    std::int64_t last_id_ = 0;
    std::vector<std::shared_ptr<virtual_link>> arrived_; // While it hung.
    std::map<std::int64_t, std::shared_ptr<virtual_link>> clients_;
    std::vector<std::weak_ptr<virtual_link>> links_;
    std::map<std::string, std::deque<scripted_answer>> answers_;
    std::map<std::string, std::string> refusals_;
    std::map<std::string, std::string> scripts_;
    std::vector<received> log_;
};

} // namespace redlock::test
