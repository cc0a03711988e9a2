// SPDX-License-Identifier: BSL-1.0
// A command to all masters that isn't a round: it leaves no key, and all replies are awaited.
#pragma once

#include "net/vote_sink.hpp"
#include "runtime/scheduler.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <utility>

namespace redlock::manager
{

/// Collects the replies. Outlives its operation while replies are pending.
class reply_collector : public net::vote_sink
{
  public:
    reply_collector(std::size_t masters, runtime::async_event& listener) noexcept
        : missing_{masters}, listener_{&listener}
    {
    }

    bool complete() const noexcept { return missing_ == 0; }
    /// Detaches the listener.
    void ignore() noexcept { listener_ = nullptr; }

    void on_vote(std::size_t master, const net::answer& none, clock::time_point) noexcept final
    {
        take_failure(master, none);
        count();
    }
    bool on_reply(std::size_t master, const resp::reply& reply) noexcept final
    {
        const bool fits = take(master, reply);
        count();
        return fits;
    }
    bool append_in_full(std::size_t, std::string&) const final { return false; }

  private:
    /// Exactly one of these is called per master: with its reply, or with the reason why there is none. The first one
    /// returns false for a reply that can't be one to this query.
    virtual bool take(std::size_t master, const resp::reply& reply) noexcept = 0;
    virtual void take_failure(std::size_t master, const net::answer& none) noexcept = 0;

    void recycle() noexcept final { delete this; }
    void count() noexcept
    {
        --missing_;
        if (listener_ != nullptr)
        {
            listener_->notify();
        }
    }

    std::size_t missing_;
    runtime::async_event* listener_;
};

/// The reference of an operation to its replies. Detaches the listener on destruction.
template <class Collector>
class broadcast_query
{
  public:
    template <class... Arguments>
    explicit broadcast_query(Arguments&&... arguments)
        : replies_{new Collector{std::forward<Arguments>(arguments)...}}
    {
    }
    broadcast_query(const broadcast_query&) = delete;
    broadcast_query& operator=(const broadcast_query&) = delete;
    ~broadcast_query() { replies_->ignore(); }

    Collector* operator->() const noexcept { return replies_.get(); }
    Collector& operator*() const noexcept { return *replies_; }

  private:
    boost::intrusive_ptr<Collector> replies_;
};

} // namespace redlock::manager
