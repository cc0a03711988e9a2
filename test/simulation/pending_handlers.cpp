// SPDX-License-Identifier: BSL-1.0
// Handlers that wait for something virtual.
#include "pending_handlers.hpp"

#include <boost/asio/query.hpp>

namespace redlock::test
{

namespace asio = boost::asio;

asio::execution_context::id pending_handlers::id;

pending_handlers& pending_handlers::of(env::scheduler& strand)
{
    asio::execution_context& context =
        asio::query(strand.strand().get_inner_executor(), asio::execution::context);
    return asio::use_service<pending_handlers>(context);
}

void pending_handlers::complete(ticket& which, error_code error, std::size_t bytes)
{
    const auto found = handlers_.find(std::exchange(which, 0));
    if (found == handlers_.end())
    {
        return;
    }
    const handler one = std::move(found->second);
    handlers_.erase(found);
    *one.what = {error, bytes};
    one.post();
}

pending_handlers::ticket pending_handlers::keep(handler one)
{
    if (!shut_down_)
    {
        handlers_.emplace(++last_, std::move(one));
    }
    return last_;
}

void pending_handlers::shutdown() noexcept
{
    shut_down_ = true;
    // What goes with a handler may ask for others of them.
    const auto gone = std::exchange(handlers_, {});
}

} // namespace redlock::test
