// SPDX-License-Identifier: BSL-1.0
// The commands in flight on one connection: what is to be written, and who gets the next reply. No I/O.
#pragma once

#include "core/clock_watch.hpp"
#include "net/ledger.hpp"
#include "net/release_pace.hpp"
#include "net/voter.hpp"

#include <redlock/clock.hpp>

#include <boost/circular_buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace redlock::net
{

/// A queue of commands that are answered in their order. Every command keeps its place until its reply has
/// come, whether anybody still waits for it or not.
class pipeline
{
  public:
    /// Commands that aren't about a debt are refused once `most_optional` are in flight; those that are, the ledger
    /// bounds. All of them are refused while `most_bytes` wait to be written. `repeats` is the back-off of releases that are
    /// refused.
    pipeline(
        std::size_t master, ledger& owed, std::size_t most_optional, std::size_t most_bytes,
        const core::backoff_policy& repeats)
        : master_{master}, owed_{owed}, most_optional_{most_optional}, most_bytes_{most_bytes}, pace_{repeats}
    {
    }

    /// Whether so many more bytes may wait.
    bool has_room(std::size_t bytes) const noexcept
    {
        return waiting_.size() + writing_.size() + bytes <= most_bytes_;
    }
    /// Only with room, here and in the ledger. `command` is the serialised SET.
    void push_set(claim& of, std::string_view command, voter* votes, clock::time_point now);
    /// The same for the turn in a line, whose `command` is the serialised script call, by digest.
    void push_turn(claim& of, std::string_view command, voter& votes, clock::time_point now);
    /// False if it is full: releases have their room reserved, extensions don't.
    /// `command` is the serialised script call, by digest.
    bool push_extend(claim& of, std::string_view command, voter& votes, clock::time_point now);
    /// False if it is full.
    bool push_question(std::string_view command, voter& asker, clock::time_point now);
    /// A debt of it becomes asked. False if it is full: then nothing has changed.
    /// `command` is the serialised script call, by digest.
    bool push_release(claim& of, std::string_view command, voter* votes, clock::time_point now);
    /// Sends the next batch of releases that are due, if its time has come and there is room.
    void push_due(clock::time_point now);
    /// When releases that are due were refused, and how long they are put off.
    release_pace& pace() noexcept { return pace_; }
    const release_pace& pace() const noexcept { return pace_; }
    /// What the server said when it refused a release permanently, once for each kind of error on a connection; else empty.
    std::string take_refusal() noexcept { return std::exchange(refusal_, {}); }
    bool has_refusal() const noexcept { return !refusal_.empty(); }
    /// Asks for a sign of life: what the server's clock shows.
    void push_probe(clock::time_point now);

    /// Matches a reply to the oldest command. An error means that the connection can't be used any more: the
    /// server isn't what it was, or what it sends can't be trusted (`protocol_error`).
    error_code on_reply(const resp::reply& reply, clock::time_point now);
    /// Whether one is unanswered.
    bool probing() const noexcept { return probing_; }
    /// What the last probe showed, once; nothing if the server doesn't tell.
    std::optional<core::clock_reading> take_clock_reading() noexcept
    {
        return std::exchange(clock_reading_, {});
    }
    /// The connection is gone: every command gets its vote, and what was asked is due again.
    /// True if a SET may still run on the server: a later connection has to fence this one.
    bool break_off(error_code reason, clock::time_point now);

    bool empty() const noexcept { return slots_.empty(); }
    /// Since when there has been one all the time, if there is one.
    clock::time_point busy_since() const noexcept { return busy_since_; }

    /// Text for the handshake, which keeps its own order.
    std::string& text() noexcept { return waiting_; }
    bool has_output() const noexcept { return !waiting_.empty(); }
    /// What has piled up becomes the next write, and stays where it is until the next call.
    std::span<const char> take_output();
    /// It is written.
    void written() noexcept
    {
        if (!writing_.empty())
        {
            clear_written();
        }
    }

  private:
    enum class verb : std::uint8_t
    {
        set,
        turn,
        extend,
        release,
        due_release, // One of a batch.
        question,
        probe
    };

    struct slot
    {
        // None beside another of its size: they would be moved in one go, which has to wait until what was just written of
        // them has got to the cache.
        claim_ptr of; // Empty for a question and a probe.
        verb what;
        voter_ptr votes;
        bool in_full = false; // The script was sent in full, after NOSCRIPT.
    };

    /// Whether it may leave a key behind.
    static bool writes_key(verb what) noexcept { return what == verb::set || what == verb::turn; }
    static bool releases(verb what) noexcept { return what == verb::release || what == verb::due_release; }
    static answer read(verb what, const resp::reply& reply) noexcept;

    void clear_written() noexcept;
    void push(slot next, clock::time_point now);
    void push_claim(verb what, claim& of, std::string_view command, voter* votes, clock::time_point now);
    void fetch_ahead() const noexcept;
    bool send_in_full(slot& unknown, clock::time_point now);
    void book_set(claim& of, const answer& said);
    void book_turn(claim& of, const answer& said);
    void book_release(claim& of, const answer& said, const resp::reply& reply);
    bool is_repeated(const answer& said) const noexcept;
    void note_refusal(core::server_error error, std::string_view words);
    void book(const slot& answered, const answer& said, const resp::reply& reply);
    void fail(const slot& lost, bool written, error_code reason, clock::time_point now);

    std::size_t master_;
    ledger& owed_;
    std::size_t most_optional_;
    std::size_t most_bytes_;
    boost::circular_buffer<slot> slots_;
    std::size_t unwritten_ = 0; // The last slots, whose text is still waiting.
    clock::time_point busy_since_{};
    bool probing_ = false;
    clock::time_point probed_{};
    std::optional<core::clock_reading> clock_reading_;
    release_pace pace_;
    std::uint32_t refusals_noted_ = 0; // A bit for each kind of error.
    std::string refusal_;
    std::string due_command_; // Where the releases of a batch are put together.
    std::string waiting_;
    std::string writing_;
};

} // namespace redlock::net
