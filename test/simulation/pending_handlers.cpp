// SPDX-License-Identifier: BSL-1.0
// Handlers that wait for something virtual.
#include "pending_handlers.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/query.hpp>

namespace redlock::test
{

namespace asio = boost::asio;

asio::execution_context::id pending_handlers::id;

pending_handlers& pending_handlers::of(runtime::scheduler& strand)
{
    asio::execution_context& context = asio::query(strand.executor(), asio::execution::context);
    return asio::use_service<pending_handlers>(context);
}

pending_handlers::ticket
pending_handlers::add(asio::any_io_executor executor, asio::any_completion_handler<void(error_code)> call)
{
    auto what = std::make_shared<result>();
    // What is posted may be copied.
    auto shared = std::make_shared<asio::any_completion_handler<void(error_code)>>(std::move(call));
    auto posted = asio::bind_executor(
        asio::get_associated_executor(*shared, executor),
        [what, shared] { std::move (*shared)(what->error); });
    return keep({what, [executor = std::move(executor), posted]() mutable {
                     asio::post(executor, std::move(posted));
                 }});
}

void pending_handlers::complete(ticket& which, error_code error, std::size_t bytes)
{
    const auto found = handlers_.find(std::exchange(which, 0));
    if (found == handlers_.end())
    {
        return;
    }
    handler one = std::move(found->second);
    handlers_.erase(found);
    *one.what = {error, bytes};
    if (holds_back_)
    {
        ready_.push_back(std::move(one));
        return;
    }
    one.post();
}

void pending_handlers::post_ready(std::size_t which)
{
    handler one = std::move(ready_.at(which));
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(which));
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
    // What is destroyed with a handler may ask for others.
    const auto gone = std::exchange(handlers_, {});
    const auto never_called = std::exchange(ready_, {});
}

} // namespace redlock::test
