// SPDX-License-Identifier: BSL-1.0
// Who gets a master's answer to a command.
#pragma once

#include "net/command.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace redlock::net
{

/// A round, as the connections see it. Counted by the commands in flight, on the strand: an answer finds it
/// there however late it comes.
class voter
{
  public:
    voter() = default;
    voter(const voter&) = delete;
    voter& operator=(const voter&) = delete;

    /// Each master votes once for each command sent to it. `at` is when that became known.
    virtual void on_vote(std::size_t master, const answer& said, clock::time_point at) noexcept = 0;
    /// The answer to a question, which is no vote.
    virtual void on_reply(std::size_t, const resp::reply&) noexcept {}
    /// The master didn't know the script of a command: puts it into `out` again, with the script in full. False if that isn't
    /// wanted any more: once a round is decided it would break the order, and land behind the release.
    virtual bool append_in_full(std::string& out) const = 0;

    friend void intrusive_ptr_add_ref(voter* self) noexcept { ++self->references_; }
    friend void intrusive_ptr_release(voter* self) noexcept
    {
        if (--self->references_ == 0)
        {
            self->recycle();
        }
    }

  protected:
    virtual ~voter() = default;
    /// Nobody refers to it any more.
    virtual void recycle() noexcept = 0;

  private:
    std::uint32_t references_ = 0;
};

using voter_ptr = boost::intrusive_ptr<voter>;

} // namespace redlock::net
