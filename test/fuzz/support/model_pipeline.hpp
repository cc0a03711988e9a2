// SPDX-License-Identifier: BSL-1.0
// The library's pipeline compared with a model of it: a queue of the listeners for replies.
#pragma once

#include "fuzz_input.hpp"

#include "net/ledger.hpp"
#include "net/pipeline.hpp"
#include "resp/parser.hpp"
#include "support/request_reader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace redlock::test
{

/// What a command of the model is.
enum class asked : std::uint8_t
{
    set,
    turn,
    extend,
    release,
    query,
    probe
};

constexpr std::chrono::milliseconds ttl{1000};
constexpr net::turn_request turn_request{
    ttl, true, std::chrono::milliseconds{50}, std::chrono::milliseconds{500}};

/// Who waits for one answer, and how it came.
struct listener final : net::vote_sink
{
    void on_vote(std::size_t, const net::answer& said, clock::time_point) noexcept override
    {
        ++heard;
        last = said.vote;
    }
    bool on_reply(std::size_t, const resp::reply&) noexcept override
    {
        ++heard;
        last = vote::granted;
        return true;
    }
    bool append_in_full(std::string& out) const override;
    void recycle() noexcept override { delete this; }

    std::size_t heard = 0;
    vote last = vote::pending;
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
    bool given_back = false;  // A release was begun.
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
        counted_claim* of = nullptr;
        bool in_full = false;
    };

    void push_set(counted_claim& of, asked what);
    void push_extend(counted_claim& of);
    void push_release(counted_claim& of);
    void push_query();
    void write();
    void answer();
    void read(const std::string& bytes);
    void take(const resp::reply& reply);
    void break_off();
    void release_what_is_due();
    void require_asked(const place& first, const command& words) const;
    void check();

    fuzz_input& input_;
    std::size_t max_outstanding_;
    std::size_t max_bytes_;
    std::array<std::unique_ptr<counted_claim>, max_claims> claims_;
    std::unique_ptr<net::ledger> owed_;
    std::unique_ptr<net::pipeline> pipeline_;
    resp::parser& parser_;
    clock::time_point now_{};
    std::deque<place> queue_;   // As they have to be answered.
    std::size_t unwritten_ = 0; // The last of them.
    request_reader requests_;
};

} // namespace redlock::test
