// SPDX-License-Identifier: BSL-1.0
// The way of a call from any thread to the strand of a manager, which may end at the same time.
#pragma once

#include "manager/lock_service.hpp"
#include "manager/manager_handle.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/tasks.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace redlock::manager
{

/// The step with which a call begins: calls a function with the service, which is set when the step is queued.
template <class Function>
struct entering_step
{
    Function function;
    lock_service* service = nullptr;

    void operator()() { function(*service); }
};

/// Calls `function` with the service, in a step: immediately on a thread of the manager's executor, otherwise later.
/// Returns the function if the manager has been closed.
///
/// Thread-safe, also while other threads destroy the manager and its execution context.
template <class Function>
std::optional<Function> enter(manager_handle& handle, Function&& function)
{
    const manager_handle::entrance found = handle.find_entrance();
    if (!found.open)
    {
        return std::move(function);
    }
    entering_step<Function> begin{std::move(function)};
    if (found.here)
    {
        begin.service = found.here.get();
        found.here->strand().run_step(std::move(begin), runtime::step_origin::user);
        return {};
    }
    auto own = std::make_unique<runtime::queued_function<entering_step<Function>>>(std::move(begin));
    entering_step<Function>& entering = own->function;
    std::unique_ptr<runtime::queued_step> step = std::move(own);
    if (handle.post(step, entering.service))
    {
        return {};
    }
    return std::move(entering.function);
}

/// Starts an operation with the arguments of a call.
template <class Call>
struct operation_start
{
    runtime::detached_task (*operation)(lock_service&, Call);
    Call call;

    void operator()(lock_service& service) { operation(service, std::move(call)); }
};

} // namespace redlock::manager
