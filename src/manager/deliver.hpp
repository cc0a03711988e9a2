// SPDX-License-Identifier: BSL-1.0
// How a completion reaches its handler.
#pragma once

#include <redlock/detail/completion.hpp>

#include "env/scheduler.hpp"

#include <boost/asio/dispatch.hpp>

#include <utility>
#include <variant>

namespace redlock::manager
{

/// Calls the handler on its executor.
template <class Signature, class... Arguments>
void deliver(detail::completion<Signature>&& done, Arguments... arguments)
{
    namespace asio = boost::asio;
    const auto* const usual = std::get_if<asio::any_io_executor>(&done.executor);
    if (usual != nullptr && env::runs_here(*usual))
    {
        // Its context may end when nothing is left to do: not before the handler has begun something new.
        std::move(done.handler)(std::move(arguments)...);
        return;
    }
    std::visit(
        [&](auto executor)
        {
            asio::dispatch(
                executor, [handler = std::move(done.handler), ... arguments = std::move(arguments)]() mutable
                { std::move(handler)(std::move(arguments)...); });
        },
        std::move(done.executor));
}

} // namespace redlock::manager
