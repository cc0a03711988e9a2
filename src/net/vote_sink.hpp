// SPDX-License-Identifier: BSL-1.0
// The recipient of a master's reply to a command.
#pragma once

#include "net/command.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>

namespace redlock::net
{

/// The recipient of votes: a round, or a broadcast query. Reference-counted on the strand by the commands in flight, so
/// that it still exists when a late reply is received.
class vote_sink
{
  public:
    vote_sink() = default;
    vote_sink(const vote_sink&) = delete;
    vote_sink& operator=(const vote_sink&) = delete;

    /// Called once for each command, with the vote of a master. `at` is the time at which the vote became known.
    virtual void on_vote(std::size_t master, const answer& result, clock::time_point at) noexcept = 0;
    /// Called instead of `on_vote` with the reply to a broadcast query. Returns false if it can't be a reply to it.
    virtual bool on_reply(std::size_t, const resp::reply&) noexcept { return false; }
    /// Called if a master doesn't know the script of a command. Appends the command again, with the full script, or
    /// returns false if it is obsolete. Once the release may have been sent, the command must not follow it.
    virtual bool append_in_full(std::size_t master, std::string& out) const = 0;

    friend void intrusive_ptr_add_ref(vote_sink* self) noexcept { ++self->references_; }
    friend void intrusive_ptr_release(vote_sink* self) noexcept
    {
        if (--self->references_ == 0)
        {
            self->recycle();
        }
    }

  protected:
    virtual ~vote_sink() { assert(references_ == 0); }
    /// Called when the last reference has been dropped.
    virtual void recycle() noexcept = 0;

  private:
    std::uint32_t references_ = 0;
};

using vote_sink_ptr = boost::intrusive_ptr<vote_sink>;

} // namespace redlock::net
