// SPDX-License-Identifier: BSL-1.0
// The library's pipeline compared with a model of it: a queue of the listeners for replies.
#pragma once

#include "fuzz_input.hpp"

#include "net/ledger.hpp"
#include "net/pipeline.hpp"
#include "net/queue_commands.hpp"
#include "resp/parser.hpp"
#include "support/request_reader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

/// What a command of the model is.
enum class asked : std::uint8_t
{
    set,
    question, // Of the wait queue.
    extend,
    release,
    queue_release,
    due_release, // A queue release that the pipeline has sent by itself.
    query,
    probe
};

constexpr std::chrono::milliseconds ttl{1000};
constexpr std::string_view model_manager_id = "0123456789abcdef0123456789abcdef";
constexpr net::question model_question{
    {model_manager_id, 7, true},
    ttl,
    std::chrono::milliseconds{50},
    std::chrono::milliseconds{1000},
    std::chrono::milliseconds{100}};

/// The recipient of one answer.
struct listener final : net::vote_sink
{
    void on_vote(std::size_t, const net::answer& said, clock::time_point) noexcept override
    {
        ++heard;
        last = said.vote;
        others_wait = said.others_wait;
        position = said.position != nullptr ? std::optional{*said.position} : std::nullopt;
    }
    bool on_reply(std::size_t, const resp::reply&) noexcept override
    {
        ++heard;
        last = vote::granted;
        return true;
    }
    bool append_in_full(std::size_t, std::string& out) const override;
    void recycle() noexcept override { delete this; }

    std::size_t heard = 0;
    vote last = vote::pending;
    bool others_wait = false;
    std::optional<core::queue_position> position{};
    bool wants = true;
    asked what = asked::query;
    const net::claim* of = nullptr;
};

/// A claim that reports when the last reference to it is gone.
struct counted_claim final : net::claim
{
    explicit counted_claim(std::size_t index);
    void recycle() noexcept override { ++recycled; }

    std::size_t recycled = 0;
    bool released = false;    // A release was begun.
    bool maybe_there = false; // A SET may have run, and no release was answered since.
};

class model_pipeline
{
  public:
    explicit model_pipeline(fuzz_input& input);

    /// The next thing that happens, as the input says.
    void act();
    /// The connection breaks for the last time, and nothing may be left.
    void end();

  private:
    static constexpr std::size_t max_claims = 8;

    struct place
    {
        asked what;
        boost::intrusive_ptr<listener> who; // Empty without a listener.
        counted_claim* of = nullptr;        // Of a due release: known since it was written.
        bool in_full = false;
    };

    void push_set(counted_claim& of, asked what);
    void push_extend(counted_claim& of);
    void push_release(counted_claim& of, asked what);
    void push_query();
    void write();
    void answer();
    void read(const std::string& bytes);
    void take(const resp::reply& reply);
    void break_off();
    void push_due();
    void note_reply(const place& first, const resp::reply& reply, bool unknown);
    void identify(place& due, const command& words);
    static void
    require_script(const place& first, const command& words, const net::script& script, std::size_t owner_at);
    void require_asked(const place& first, const command& words) const;
    void check_vote(const place& first, const resp::reply& reply) const;
    void check();

    fuzz_input& input_;
    std::size_t max_outstanding_;
    std::size_t max_bytes_;
    std::array<std::unique_ptr<counted_claim>, max_claims> claims_;
    std::unique_ptr<net::ledger> owed_;
    std::unique_ptr<net::pipeline> pipeline_;
    resp::parser& parser_;
    clock::time_point now_{};
    std::deque<place> queue_;                   // As they have to be answered.
    std::size_t unwritten_ = 0;                 // The last of them.
    clock::time_point owes_since_{};            // Since when the server has owed replies.
    std::vector<counted_claim*> due_unwritten_; // Those of unwritten due releases, in any order.
    request_reader requests_;
};

} // namespace redlock::test
