// SPDX-License-Identifier: BSL-1.0
// Delivers a completion to its handler.
#pragma once

#include <redlock/detail/completion.hpp>
#include <redlock/detail/dispatch.hpp>

#include "runtime/scheduler.hpp"

#include <functional>
#include <utility>
#include <variant>

namespace redlock::manager
{

/// Calls the handler on its executor: directly if this thread runs that executor, otherwise by a dispatch.
template <class Signature, class... Arguments>
void deliver(detail::completion<Signature>&& done, Arguments... arguments)
{
    namespace asio = boost::asio;
    const auto* const usual = std::get_if<asio::any_io_executor>(&done.executor);
    if (usual != nullptr && runtime::runs_here(*usual))
    {
        // Before `done` is destroyed: its outstanding work keeps the context running until the handler has started
        // new work.
        std::move(done.handler)(std::move(arguments)...);
        return;
    }
    std::visit(
        [&](auto executor)
        {
            detail::dispatch_or_terminate(
                executor,
                [handler = std::move(done.handler), ... arguments = std::move(arguments)]() mutable
                { std::move(handler)(std::move(arguments)...); },
                std::identity{});
        },
        std::move(done.executor));
}

} // namespace redlock::manager
