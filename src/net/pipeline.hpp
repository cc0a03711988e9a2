// SPDX-License-Identifier: BSL-1.0
// The commands in flight on one connection: the output to be written, and the recipients of the replies. No I/O.
#pragma once

#include "core/clock_watch.hpp"
#include "net/ledger.hpp"
#include "net/release_backoff.hpp"
#include "net/vote_sink.hpp"

#include <redlock/clock.hpp>

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace redlock::net
{

struct queue_refusals;

/// The queue of commands in flight on one connection, which a server answers in their order.
///
/// A command passes through three stages: its text is appended to the output that is waiting; the output is taken for a
/// write; the reply is received. It stays in the queue until its reply has been received, even if its round has ended,
/// so that a late reply is never matched to another command.
///
/// The connection drives it, on the manager's strand: it pushes commands, calls `take_output` for each write and
/// `written` after it, passes in each reply (`on_reply`), and calls `break_off` when the connection has ended, after
/// which the pipeline is ready for the next one. The handshake uses only the output (`text`); it matches its replies
/// itself.
///
/// Guarantees:
/// - Each command that was pushed with a vote sink leads to one vote (or the reply to a query), from `on_reply` or
///   `break_off`. The ledger is updated before the vote is delivered.
/// - Releases are repeated as the ledger requires. Any other command is sent again only if its script was unknown
///   (NOSCRIPT), so that it has not run: once, in full, unless its round or the claim's release has made it obsolete.
/// - The numbers of commands and of bytes are bounded. An extension or a query is refused if there is no room; for a
///   SET the caller checks `has_room` and the ledger first.
class pipeline
{
  public:
    /// Commands that don't concern an outstanding key are refused while `max_optional` commands are in flight; the
    /// others are bounded by the ledger. All commands are refused if the output would exceed `max_bytes`. `repeats` is
    /// the back-off of refused releases. In guarded mode, questions and extensions are calls of `guarded_ask_script` and
    /// `guarded_extend_script`.
    pipeline(
        std::size_t master, ledger& outstanding, std::size_t max_optional, std::size_t max_bytes,
        const core::backoff_policy& repeats, bool is_guarded = false)
        : guarded_{is_guarded},
          master_{master},
          outstanding_{outstanding},
          max_optional_{max_optional},
          max_bytes_{max_bytes},
          backoff_{repeats}
    {
    }

    /// Returns whether the output has room for another `bytes` bytes.
    bool has_room(std::size_t bytes) const noexcept
    {
        return waiting_.size() + writing_.size() + bytes <= max_bytes_;
    }
    /// Queues a serialised SET. Precondition: there is room for it here and in the ledger.
    void push_set(claim& of, std::string_view command, vote_sink* votes);
    /// Queues a serialised call of `guarded_acquire_script` by digest. Precondition: as for `push_set`.
    void push_guarded_set(claim& of, std::string_view command, vote_sink& votes);
    /// Queues a serialised call of `raise_script` by digest. Returns false if there is no room.
    bool push_raise(claim& of, std::string_view command, vote_sink& votes);
    /// Queues a serialised call of `ask_script` by digest. Precondition: as for `push_set`.
    void push_ask(claim& of, std::string_view command, vote_sink& votes);
    /// Queues a serialised call of `extend_script` by digest. Returns false if there is no room.
    bool push_extend(claim& of, std::string_view command, vote_sink& votes);
    /// Queues a query of a broadcast. Returns false if there is no room.
    bool push_query(std::string_view command, vote_sink& votes);
    /// Queues a serialised release by digest, and records it in the ledger if the key is outstanding. Returns false,
    /// without any change, if there is no room.
    bool push_release(claim& of, const release_command& command, vote_sink* votes);
    /// Queues the next batch of releases that are due, if its time has come, as far as there is room.
    void push_due(clock::time_point now);
    /// Returns the pacing of the releases that are due.
    release_backoff& backoff() noexcept { return backoff_; }
    const release_backoff& backoff() const noexcept { return backoff_; }
    /// True if there is a refusal to take.
    bool has_refusal() const noexcept { return has_refusal_; }
    /// Returns the server's text for a permanent refusal of a release, once for each kind of error on a connection;
    /// otherwise empty.
    std::string take_refusal() noexcept
    {
        has_refusal_ = !queue_refusal_.empty();
        return std::exchange(refusal_, {});
    }
    /// Returns the server's text for the first question that it refused permanently on this connection, once.
    std::string take_queue_refusal() noexcept
    {
        has_refusal_ = !refusal_.empty();
        return std::exchange(queue_refusal_, {});
    }
    /// Records what the trial of the handshake has found, which reports it.
    void note_trial(const queue_refusals& found);
    /// Returns that the last trial has found DEL refused, in words; empty if it hasn't.
    const std::string& forbidden_deletion() const noexcept { return forbidden_deletion_; }
    /// Returns which other command the last trial has found refused, in words; empty for none.
    const std::string& forbidden_question() const noexcept { return forbidden_question_; }
    /// Returns whether the last trial has found a refusal, which the administrator may end.
    bool failed_trial() const noexcept
    {
        return !forbidden_question_.empty() || !forbidden_deletion_.empty();
    }
    /// Queues another trial.
    void push_trial(std::string_view key_prefix);
    /// Returns whether the server has refused a question for every key, or a command of one in the last trial.
    bool refuses_questions() const noexcept { return refuses_questions_ || !forbidden_question_.empty(); }
    /// Returns whether the server has permanently refused a release for every key, and hasn't deleted one since, or DEL in the
    /// last trial. A queue there would wake nobody, and the keys that stay there would refuse clients that all other masters
    /// grant.
    bool refuses_releases() const noexcept { return refuses_releases_ || !forbidden_deletion_.empty(); }
    /// Queues a TIME command, which shows whether the server responds, and its clock.
    void push_probe(clock::time_point now);

    /// Matches a reply to the oldest command. An error means that the connection has to be closed: the server is no
    /// longer a usable master, or sent invalid data (`protocol_error`).
    error_code on_reply(const resp::reply& reply, clock::time_point now);
    /// Returns whether a probe is in flight.
    bool probing() const noexcept { return probing_; }
    /// Returns whether the next reply is that to a probe.
    bool probe_is_next() const noexcept { return awaits_reply() && slots_.front().what == verb::probe; }
    /// Returns the clock reading of the last probe, once; nothing if the server didn't answer with its time.
    std::optional<core::clock_reading> take_clock_reading() noexcept
    {
        return std::exchange(clock_reading_, {});
    }
    /// Returns whether the server refuses TIME permanently.
    bool hides_clock() const noexcept { return hides_clock_; }
    /// Ends all commands because the connection has ended: delivers their votes, and makes keys due again whose release
    /// was in flight. Returns true if a SET may still run on the server, so that the connection has to be killed.
    bool break_off(error_code reason, clock::time_point now);

    /// Returns whether a release is queued or in flight. Looks at the latest commands first.
    bool releases_in_flight() const noexcept
    {
        return std::any_of(
            slots_.rbegin(), slots_.rend(), [](const slot& each) { return releases(each.what); });
    }
    /// Returns whether the server owes a reply. It owes none for a command that waits in the output, and a handler that blocks
    /// this thread may keep one waiting there for long.
    bool awaits_reply() const noexcept { return slots_.size() > unwritten_; }
    /// Returns the time since which the server has owed replies without interruption. Meaningful only if it owes one.
    clock::time_point busy_since() const noexcept { return busy_since_; }

    /// Returns the output buffer, for the commands of the handshake.
    std::string& text() noexcept { return waiting_; }
    bool has_output() const noexcept { return !waiting_.empty(); }
    /// Returns the waiting output for a write that begins now. It stays valid until the next call, or until `written`.
    std::span<const char> take_output(clock::time_point now);
    /// Called when the output that was taken has been written.
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
        guarded_set,
        ask,
        raise,
        extend,
        release,
        queue_release,
        due_release, // A queue release, as one of a batch.
        query,       // This one and those below ask for information, and don't concern a claim.
        trial,       // Of the queue's commands.
        probe
    };

    struct slot
    {
        // The pointers are not adjacent. Otherwise the compiler moves both with one wide load, which stalls until the
        // two stores that have just written them are complete.
        claim_ptr of; // Null for a query, a trial and a probe.
        verb what;
        vote_sink_ptr votes;
        bool in_full = false; // The script was sent in full, after a NOSCRIPT reply.
    };

    /// Returns whether a command may create a key.
    static bool writes_key(verb what) noexcept
    {
        return what == verb::set || what == verb::guarded_set || what == verb::ask;
    }
    static bool releases(verb what) noexcept
    {
        return what == verb::release || what == verb::queue_release || what == verb::due_release;
    }
    error_code on_probe_reply(const resp::reply& reply, clock::time_point now);
    error_code on_trial_reply(const resp::reply& reply);
    error_code on_information(const slot& answered, const resp::reply& reply, clock::time_point now);
    answer read(verb what, const resp::reply& reply) noexcept;
    [[gnu::noinline]] answer read_guarded(verb what, const resp::reply& reply) noexcept;

    void clear_written() noexcept;
    void push(slot next);
    bool push_optional(verb what, claim* of, std::string_view command, vote_sink& votes);
    void push_claim(verb what, claim& of, std::string_view command, vote_sink* votes);
    void fetch_ahead() const noexcept;
    bool send_in_full(slot& unknown);
    void record_set(claim& of, const answer& result);
    void record_guarded_set(claim& of, const answer& result);
    void record_ask(claim& of, const answer& result);
    void record_nothing_set(claim& of);
    void record_release(claim& of, const answer& result, const resp::reply& reply);
    bool is_repeated(const answer& result) const noexcept;
    void note_refusal(core::server_error error, std::string_view words);
    void record(const slot& answered, const answer& result, const resp::reply& reply);
    void fail(const slot& lost, bool written, error_code reason, clock::time_point now);

    bool guarded_;
    std::size_t master_;
    ledger& outstanding_;
    std::size_t max_optional_;
    std::size_t max_bytes_;
    boost::circular_buffer<slot> slots_;
    std::size_t unwritten_ = 0; // The number of last slots whose text is in waiting_.
    clock::time_point busy_since_{};
    bool probing_ = false;
    bool hides_clock_ = false;
    clock::time_point probed_{};
    std::optional<core::clock_reading> clock_reading_;
    release_backoff backoff_;
    std::uint32_t refusals_noted_ = 0; // One bit for each kind of error.
    std::string refusal_;
    bool has_refusal_ = false;
    bool refuses_questions_ = false;
    bool refuses_releases_ = false;
    std::string queue_refusal_;
    std::string forbidden_question_;  // In the last trial.
    std::string forbidden_deletion_;  // The same.
    core::queue_position position_{}; // In the answer to a question.
    std::string due_command_;         // The buffer for serialising the releases of a batch.
    std::string waiting_;
    std::string writing_;
};

} // namespace redlock::net
