// SPDX-License-Identifier: BSL-1.0
// How a completion reaches its handler.
#pragma once

#include <redlock/detail/completion.hpp>

#include "env/scheduler.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <utility>
#include <variant>

namespace redlock::manager
{

/// Calls the handler on its executor. `inner` is the manager's.
template <class Signature, class... Arguments>
void deliver(
    const boost::asio::any_io_executor& inner, env::delivery how, detail::completion<Signature> done,
    Arguments... arguments)
{
    namespace asio = boost::asio;
    const auto* const usual = std::get_if<asio::any_io_executor>(&done.executor);
    if (how == env::delivery::at_once && usual != nullptr && env::runs_here(*usual))
    {
        // Its context may end when nothing is left to do: not before the handler has begun something new.
        std::move(done.handler)(std::move(arguments)...);
        return;
    }
    auto on_its_executor = [done = std::move(done), ... arguments = std::move(arguments)]() mutable
    {
        std::visit(
            [&](auto executor)
            {
                asio::dispatch(
                    executor,
                    [handler = std::move(done.handler), ... arguments = std::move(arguments)]() mutable
                    { std::move(handler)(std::move(arguments)...); });
            },
            std::move(done.executor));
    };
    if (how == env::delivery::at_once)
    {
        on_its_executor();
    }
    else
    {
        asio::post(inner, std::move(on_its_executor));
    }
}

} // namespace redlock::manager
