// SPDX-License-Identifier: BSL-1.0
// Handlers that wait for something virtual: bound and posted as Asio's own operations do it.
#pragma once

#include "runtime/scheduler.hpp"

#include <redlock/error.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace redlock::test
{

/// The handlers of all operations in flight. They are destroyed with their execution context, like those of sockets,
/// because a handler keeps its manager alive, which keeps its streams.
class pending_handlers final : public boost::asio::execution_context::service
{
  public:
    using ticket = std::uint64_t; // 0 for none.

    static boost::asio::execution_context::id id;

    /// The one of the context on which the strand runs.
    static pending_handlers& of(runtime::scheduler& strand);

    explicit pending_handlers(boost::asio::execution_context& context)
        : boost::asio::execution_context::service{context}
    {
    }

    /// Keeps `function(error, bytes)` until it is completed.
    template <class Function>
    ticket add(runtime::scheduler& strand, Function function)
    {
        auto what = std::make_shared<result>();
        auto bound = strand.bind([what, call = std::move(function)] { call(what->error, what->bytes); });
        return keep({std::move(what), [&strand, bound = std::move(bound)]() mutable {
                         boost::asio::post(strand.executor(), std::move(bound));
                     }});
    }
    /// Does the same for a handler that belongs to no strand.
    ticket
    add(boost::asio::any_io_executor executor, boost::asio::any_completion_handler<void(error_code)> call);
    /// Calls nothing until `post_ready`, by which the test picks the next handler.
    void hold_back() noexcept { holds_back_ = true; }
    std::size_t ready() const noexcept { return ready_.size(); }
    /// Only one that is ready: below `ready()`.
    void post_ready(std::size_t which);
    /// Returns true if no handler waits or is ready.
    bool empty() const noexcept { return handlers_.empty() && ready_.empty(); }
    /// Posts the handler. Does nothing without one, and clears the ticket.
    void complete(ticket& which, error_code error, std::size_t bytes = 0);

  private:
    struct result
    {
        error_code error;
        std::size_t bytes = 0;
    };
    struct handler
    {
        std::shared_ptr<result> what;
        std::function<void()> post;
    };

    ticket keep(handler one);
    void shutdown() noexcept override;

    std::map<ticket, handler> handlers_;
    std::vector<handler> ready_; // While they are held back.
    ticket last_ = 0;
    bool holds_back_ = false;
    bool shut_down_ = false;
};

} // namespace redlock::test
