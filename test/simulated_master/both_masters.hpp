// SPDX-License-Identifier: BSL-1.0
// A real server and a simulated master that get the same bytes, and are asked for the same replies.
#pragma once

#include "resp/parser.hpp"
#include "simulation/sim_master.hpp"
#include "support/control_client.hpp"
#include "support/request_reader.hpp"
#include "support/server.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// Splits a stream of replies.
class reply_cutter
{
  public:
    void feed(std::string_view bytes);
    /// Each as it was sent.
    const std::vector<std::string>& replies() const noexcept { return replies_; }

  private:
    resp::parser parser_{};
    std::string begun_;
    std::vector<std::string> replies_;
};

/// One connection to each of the two. Not for several threads.
class both_connection final : private client_end
{
  public:
    both_connection(int port, virtual_world& world, sim_master& simulated);
    both_connection(const both_connection&) = delete;
    both_connection& operator=(const both_connection&) = delete;
    ~both_connection();

    /// Sends bytes to both and doesn't wait.
    void send(std::string_view bytes);
    /// Closes it to both, in an orderly way or with RST.
    void close(bool orderly);
    /// Reads until the real one has answered every command, or closed the connection where the simulated one did.
    void settle();
    /// Whether it is open on both sides.
    bool open() const noexcept { return socket_ && !ended_really_ && !ended_in_simulation_; }
    /// In words, how the two differ in what they have answered since the last call. Empty for not at all.
    std::string difference();
    /// How many replies were compared.
    std::size_t compared() const noexcept { return compared_; }
    /// The last reply of the real one. Precondition: there is one.
    const std::string& last() const { return real_.replies().back(); }

  private:
    void on_connected(error_code error) override;
    void on_bytes(std::string_view bytes) override { simulated_.feed(bytes); }
    void on_room() override {}
    void on_end(error_code) override { ended_in_simulation_ = true; }
    void read_real();

    unique_fd socket_;
    std::shared_ptr<virtual_link> link_;
    request_reader reader_;
    std::vector<command> asked_;
    std::size_t compared_ = 0;
    reply_cutter real_;
    reply_cutter simulated_;
    std::string silent_; // The outstanding answer of the real one, after a wait that was too long.
    bool ended_really_ = false;
    bool ended_in_simulation_ = false;
};

class both_masters
{
  public:
    /// The simulated one gets run id, replication id and version of the real one.
    explicit both_masters(std::string password = {}, std::string program = "redis-server");

    /// A connection, which gets the same id on both sides: no other client connects.
    std::unique_ptr<both_connection> connect();
    /// The id of the last connection.
    std::int64_t last_id() const noexcept { return last_id_; }
    /// Lets both do all that is under way: a server answers after an iteration of its event loop, all clients of that
    /// iteration.
    void settle();
    /// Both do nothing any more, while connections and bytes pile up; and go on.
    void hang();
    void resume();
    /// Waits until the real one has no key of this name, or one that lasts; lets as much time go by for the other.
    void wait_for_expiry(const std::string& key);
    /// Forgets all keys and scripts.
    void clear();

    // ---- The ends of an incarnation. A restart closes the connections.
    void restart(bool keeps_keys);
    /// Makes it a writable replica of a master that doesn't exist.
    void demote();
    /// Makes it a master, after it has been a replica.
    void promote();
    const std::string& replication_id() const noexcept { return simulated_.replication_id; }
    /// The value of a key in database 0 of the real one; empty for none.
    std::string value(const std::string& key);
    /// Sets the clock of the simulated one to that of the real one. Returns the time in microseconds.
    std::int64_t align_clocks();

  private:
    void run_simulation();
    void take_over_ids();
    void align_client_ids();

    virtual_world world_{1};
    server real_;
    sim_master simulated_;
    control_client control_;
    std::int64_t last_id_ = 0;
};

} // namespace redlock::test
