// SPDX-License-Identifier: BSL-1.0
// Which earlier connections may still run a SET of ours, and so have to be killed before anything else is
// sent.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redlock::net
{

/// The guard against ghosts: a SET that was written to a connection that broke may run on the server after
/// the release that follows on the next connection. The next connection kills the broken ones first.
///
/// Client ids start anew with the server, so they mean something only with its run id: under another run id,
/// or an unknown one, they'd be those of strangers, and nothing is killed.
class fence
{
  public:
    /// The most broken connections that are remembered. A connection sends no SET before the earlier ones are
    /// confirmed dead, so there is one at a time; the bound is for what nobody thought of.
    static constexpr std::size_t most = 64;

    /// A connection has learnt who it is and to which server it leads. 0 and "" where the server doesn't
    /// tell.
    void arrive(std::int64_t client_id, std::string run_id)
    {
        if (run_id.empty() || run_id != run_id_)
        {
            to_kill_.clear();
        }
        client_id_ = client_id;
        run_id_ = std::move(run_id);
    }

    /// The connection broke with a SET of ours unanswered.
    void leave_ghosts()
    {
        if (client_id_ != 0 && !run_id_.empty() && to_kill_.size() < most)
        {
            to_kill_.push_back(client_id_);
        }
    }

    const std::vector<std::int64_t>& to_kill() const noexcept { return to_kill_; }
    /// All of them are dead, or can't be killed by us.
    void confirm() noexcept { to_kill_.clear(); }

    /// The server's, of the last connection that learnt it.
    const std::string& run_id() const noexcept { return run_id_; }

  private:
    std::int64_t client_id_ = 0;
    std::string run_id_;
    std::vector<std::int64_t> to_kill_;
};

} // namespace redlock::net
