// SPDX-License-Identifier: BSL-1.0
// Passes a completion to its executor, so that it isn't lost if memory is short.
#pragma once

#include <boost/asio/dispatch.hpp>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace redlock::detail
{

/// The `bad_alloc` of a handler that was called, as opposed to that of an executor that couldn't queue it.
struct handler_out_of_memory : std::bad_alloc
{
};

template <class Function>
struct marking_handler
{
    Function function;

    void operator()()
    {
        try
        {
            std::move(function)();
        }
        catch (const std::bad_alloc&)
        {
            throw handler_out_of_memory{};
        }
    }
};

/// Calls `asio::dispatch`. Terminates the program if there is no memory to queue the function. Exceptions of the function
/// itself pass. `bind` adds associated properties, such as an allocator.
template <class Executor, class Function, class Bind>
void dispatch_or_terminate(const Executor& executor, Function&& function, Bind&& bind)
{
    try
    {
        boost::asio::dispatch(
            executor, bind(marking_handler<std::decay_t<Function>>{std::forward<Function>(function)}));
    }
    catch (const handler_out_of_memory&)
    {
        throw;
    }
    catch (const std::bad_alloc&)
    {
        std::terminate();
    }
}

} // namespace redlock::detail
