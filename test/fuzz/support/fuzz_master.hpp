// SPDX-License-Identifier: BSL-1.0
// A master that answers as the fuzzer's input says: rightly, wrongly, late, twice, in pieces, or with any bytes.
#pragma once

#include "fuzz_input.hpp"
#include "witness.hpp"

#include "resp/parser.hpp"
#include "runtime/environment.hpp"
#include "simulation/master_store.hpp"
#include "simulation/pending_handlers.hpp"
#include "simulation/reply_value.hpp"
#include "simulation/virtual_world.hpp"
#include "support/request_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test
{

class fuzz_master;

/// The client's end of a connection to a hostile master, as the library sees it.
class hostile_stream final : public runtime::stream
{
  public:
    hostile_stream(runtime::scheduler& strand, fuzz_master& to);
    ~hostile_stream() override;

    void connect(runtime::io_operation& operation, clock::time_point until) override;
    void read_some(std::span<char> buffer, runtime::io_operation& operation) override;
    void write(std::span<const char> bytes, runtime::io_operation& operation) override;
    void close() noexcept override;

    // Called by the master.
    void on_connected(error_code result) { handlers_.complete(connecting_, result); }
    void on_bytes(std::string_view bytes);
    void on_end(error_code why);
    /// A write that waited is done.
    void on_room() { handlers_.complete(writing_, {}, to_write_.size()); }
    bool closed() const noexcept { return closed_; }

  private:
    pending_handlers::ticket begin(runtime::io_operation& operation);
    void read();

    runtime::scheduler& strand_;
    pending_handlers& handlers_;
    fuzz_master& master_;
    bool closed_ = false;
    pending_handlers::ticket connecting_ = 0;
    pending_handlers::ticket reading_ = 0;
    pending_handlers::ticket writing_ = 0;
    std::span<char> buffer_;
    std::string arrived_;
    error_code end_;
    std::span<const char> to_write_;
    std::string as_it_was_;
};

/// There is one connection at a time.
class fuzz_master
{
  public:
    fuzz_master(
        std::size_t index, virtual_world& world, fuzz_input& input, witness& seen, std::size_t max_in_flight);
    fuzz_master(const fuzz_master&) = delete;
    fuzz_master& operator=(const fuzz_master&) = delete;

    // ---- How it behaves, from now on.
    bool listens = true;      // Else connections are refused.
    bool takes_bytes = true;  // Else what is written stays unwritten.
    bool hangs = false;       // It answers nothing; commands pile up.
    bool is_hostile = false;  // The input decides on every answer.
    bool greets_well = true;  // But not on those of the handshake.
    std::size_t piece = 0;    // The most bytes that the client reads at a time; 0 for all.
    clock::duration delay{0}; // Of what it sends.

    // ---- What it does out of itself.
    void send(std::string bytes);
    /// Pushes as the input says, most of them on the manager's channel.
    void send_pushes();
    void end(error_code why);
    /// What it kept back is done now.
    void go_on();
    /// From now on it behaves.
    void become_honest();
    /// Nothing is ready or under way: unsolicited replies must have been refused.
    void check_when_idle();
    /// Everything that is due is done: it isn't waited for longer than that.
    void check_patience(clock::duration most) const;
    /// The time since doesn't count: the machine slept.
    void forgive() noexcept { last_answer_ = world_.now(); }

    // ---- The client's end.
    void on_connect(hostile_stream& client);
    void on_command_bytes(std::string_view bytes);
    void on_close(const hostile_stream& client) noexcept;

    bool has_client() const noexcept { return client_ != nullptr; }
    std::size_t streams() const noexcept { return streams_; }
    void count_stream(std::ptrdiff_t change) noexcept
    {
        streams_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(streams_) + change);
    }

  private:
    /// On this connection, if it is still there then.
    template <class Function>
    void later(clock::time_point when, Function what)
    {
        auto on_time = [this, connection = connection_, what = std::move(what)]
        {
            if (client_ != nullptr && connection_ == connection)
            {
                what();
            }
        };
        world_.at(when, event_kind::network, std::move(on_time));
    }
    clock::time_point arrival() noexcept;
    const resp::reply* next_reply();
    void match();
    void end_request();
    void answer(const command& words);
    std::string wrong_answer(const command& words);
    std::string wrong_of_its_kind(const command& words, std::uint8_t which) const;
    std::string hostile_push();
    std::string message(std::string_view payload) const;
    std::string honest_answer(const command& words);
    std::string greeting(const command& words);
    std::string script_answer(const command& words);
    reply_value run_for_script(const command& words, std::string& messages);
    std::string subscribe(const command& words);
    std::int64_t publish(const command& words, std::string& messages) const;

    std::size_t index_;
    virtual_world& world_;
    fuzz_input& input_;
    witness& seen_;
    std::size_t max_in_flight_;

    // Of the connection.
    hostile_stream* client_ = nullptr;
    std::uint64_t connection_ = 0; // Changes with each, so that what is under way finds its own.
    bool votes_ = false;           // A SET was written.
    int protocol_ = 2;
    std::string subscribed_{}; // The client's channel.
    request_reader requests_;
    std::deque<written> unanswered_;
    std::size_t unknown_scripts_ =
        0;                // Answers NOSCRIPT, after each of which a script may be sent in full once.
    bool misfit_ = false; // It sent what no request of the subscription is answered by.
    std::string unread_;  // What was sent and isn't parsed: there is nothing that it could answer.
    resp::parser& replies_;
    std::vector<command> kept_back_;
    clock::time_point last_sent_{};
    clock::time_point last_answer_{};

    // Of the server.
    master_store keys_;
    std::map<std::string, std::string> scripts_; // By digest.
    std::size_t streams_ = 0;
};

} // namespace redlock::test
