// SPDX-License-Identifier: BSL-1.0
// The public API of the manager: from a call on any thread to a coroutine on the strand.
#include <redlock/lock_manager.hpp>

#include "api/cancellation.hpp"
#include "api/config_check.hpp"
#include "api/create.hpp"
#include "io/asio_environment.hpp"
#include "io/tls_context.hpp"
#include "manager/deliver.hpp"
#include "manager/enter.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace redlock
{

namespace
{

namespace asio = boost::asio;
using api::watch_cancellation;
using manager::lock_service;
using manager::manager_handle;

/// Completes an operation that found no manager.
///
/// It is posted to the executor of the handler, because the context of the manager may be destroyed at the same time. An
/// `any_completion_executor` would run functions at once, so the system executor hands over to it.
template <class Failure, class... Arguments>
void complete_closed(
    report* out, operation what, detail::completion<void(Failure, Arguments...)> done, error_code why,
    const std::string& resource, std::type_identity_t<Arguments>... arguments)
{
    if (out != nullptr)
    {
        *out = report{};
        out->operation = what;
        out->result = why;
    }
    Failure failure;
    if constexpr (std::is_same_v<Failure, std::exception_ptr>)
    {
        failure = std::make_exception_ptr(lock_error{why, resource});
    }
    else
    {
        failure = why;
    }
    const auto* const usual = std::get_if<asio::any_io_executor>(&done.executor);
    // Without outstanding work, which would end after the handler.
    const asio::any_io_executor executor =
        usual != nullptr ? asio::prefer(*usual, asio::execution::outstanding_work.untracked)
                         : detail::executor_of(detail::manager_handle_ptr{}); // The system executor.
    asio::post(
        executor,
        [done = std::move(done), failure = std::move(failure), ... arguments = std::move(arguments)]() mutable
        { manager::deliver(std::move(done), std::move(failure), std::move(arguments)...); });
}

/// Starts an operation. Returns the call if it found no manager.
template <class Call>
std::optional<Call> start(
    const std::shared_ptr<manager_handle>& handle, runtime::detached_task (*operation)(lock_service&, Call),
    Call&& call)
{
    if (!handle)
    {
        return std::move(call);
    }
    call.id = handle->next_operation();
    watch_cancellation(handle, call.done, call.id);
    auto refused = manager::enter(*handle, manager::operation_start<Call>{operation, std::move(call)});
    return refused ? std::optional{std::move(refused->call)} : std::nullopt;
}

void begin_acquire(const std::shared_ptr<manager_handle>& handle, manager::acquire_call&& call)
{
    if (auto refused = start(handle, manager::acquire, std::move(call)))
    {
        const auto complete = [&](auto& done)
        {
            complete_closed(
                refused->out, operation::acquire, std::move(done), errc::closed, refused->resource, lease{});
        };
        std::visit(complete, refused->done);
    }
}

/// Returns the result of an operation on a lease that found no manager.
error_code end_of(const manager::lease_state& held) noexcept
{
    return held.phase() == manager::lease_phase::released ? errc::not_held : errc::closed;
}

} // namespace

namespace detail
{

void start_acquire(
    const manager_handle_ptr& handle, std::string resource, acquire_options options, report* out,
    lease_completion done)
{
    begin_acquire(handle, {std::move(resource), options, false, {}, out, std::move(done), 0});
}

void start_try_acquire(
    const manager_handle_ptr& handle, std::string resource, try_options options, report* out,
    lease_completion done)
{
    const acquire_options one_round{.ttl = options.ttl, .min_validity = options.min_validity};
    begin_acquire(handle, {std::move(resource), one_round, true, {}, out, std::move(done), 0});
}

void start_acquire_kept(
    const manager_handle_ptr& handle, std::string resource, keep_options options, report* out,
    lease_completion done)
{
    const acquire_options plain{options.ttl, options.wait, options.min_validity, options.max_rounds};
    const manager::keep_order keep{options.max_hold, options.extend_every, options.stop_margin};
    begin_acquire(handle, {std::move(resource), plain, false, keep, out, std::move(done), 0});
}

void start_wait_lost(lease_state_ptr held, loss_completion done)
{
    const manager_handle_ptr handle = held->handle();
    manager::wait_lost_call call{std::move(held), std::move(done), 0};
    if (auto refused = start(handle, manager::wait_lost, std::move(call)))
    {
        const error_code why = end_of(*refused->held);
        complete_closed(nullptr, operation::release, std::move(refused->done), why, {}, error_code{});
    }
}

std::exception_ptr
make_lock_error(const lease_state_ptr& held, const error_code& why, const std::string& resource)
{
    std::string text;
    if (const failed_extension* const before =
            held && why == errc::lease_lost ? held->before_loss() : nullptr)
    {
        // One that was pending when the lease was lost begins with the same words.
        text = before->result == why ? std::string{} : why.message() + "\n";
        text += before->to_report().to_string();
    }
    return std::make_exception_ptr(lock_error{why, resource, text});
}

void start_extend(lease_state_ptr held, std::chrono::milliseconds ttl, report* out, status_completion done)
{
    const manager_handle_ptr handle = held->handle();
    manager::extend_call call{std::move(held), ttl, out, std::move(done), 0};
    if (auto refused = start(handle, manager::extend, std::move(call)))
    {
        complete_closed(out, operation::extend, std::move(refused->done), end_of(*refused->held), {});
    }
}

void start_release(lease_state_ptr held, report* out, status_completion done)
{
    const manager_handle_ptr handle = held->handle();
    const lease_state_ptr kept = held;
    manager::release_call call{std::move(held), out, std::move(done), 0};
    // Before the step, which may run on another thread at once.
    kept->request_release();
    try
    {
        if (auto refused = start(handle, manager::release, std::move(call)))
        {
            complete_closed(out, operation::release, std::move(refused->done), end_of(*kept), {});
        }
    }
    catch (...)
    {
        // Out of memory: the release hasn't begun, and the destructor of the lease has to hand it back.
        kept->withdraw_release();
        throw;
    }
}

void start_inspect(const manager_handle_ptr& handle, std::string resource, inspection_completion done)
{
    manager::inspect_call call{std::move(resource), std::move(done), 0};
    if (auto refused = start(handle, manager::inspect, std::move(call)))
    {
        complete_closed(
            nullptr, operation::acquire, std::move(refused->done), errc::closed, {}, inspection{});
    }
}

void start_examine(const manager_handle_ptr& handle, examination_completion done)
{
    manager::examine_call call{std::move(done), 0};
    if (auto refused = start(handle, manager::examine, std::move(call)))
    {
        complete_closed(
            nullptr, operation::acquire, std::move(refused->done), errc::closed, {},
            std::vector<master_examination>{});
    }
}

void start_shutdown(const manager_handle_ptr& handle, status_completion done)
{
    manager::shutdown_call call{std::move(done), 0};
    if (auto refused = start(handle, manager::shut_down, std::move(call)))
    {
        complete_closed(nullptr, operation::release, std::move(refused->done), errc::closed, {});
    }
}

} // namespace detail

detail::manager_handle_ptr api::create(
    asio::any_io_executor executor, config options, std::shared_ptr<const runtime::environment> outside)
{
    check(options);
    auto handle = std::make_shared<manager_handle>(executor, outside);
    auto service =
        std::make_shared<lock_service>(handle, std::move(executor), std::move(options), std::move(outside));
    // What can fail comes ahead of the first step, which connects: nothing would end a manager without a handle.
    handle->watch_context();
    service->open();
    handle->open(std::move(service));
    return handle;
}

std::shared_ptr<const runtime::environment> api::real_environment(const config& options)
{
    check(options);
    const bool tls = std::any_of(
        options.masters.begin(), options.masters.end(), [](const master& each) { return each.is_tls(); });
    return std::make_shared<io::asio_environment>(tls ? io::make_tls_context(options.tls) : nullptr);
}

lock_manager::lock_manager(detail::executor_source on, config options)
{
    auto outside = api::real_environment(options);
    handle_ = api::create(on.get(), std::move(options), std::move(outside));
}

lock_manager& lock_manager::operator=(lock_manager&& other) noexcept
{
    // Self-move leaves it unchanged.
    lock_manager given{std::move(other)};
    std::swap(handle_, given.handle_);
    return *this;
}

lock_manager::~lock_manager()
{
    if (handle_)
    {
        handle_->abort();
    }
}

} // namespace redlock
