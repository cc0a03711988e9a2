// SPDX-License-Identifier: BSL-1.0
// The thread-safe access to a manager's strand.
#include "manager/manager_handle.hpp"

#include "manager/lock_service.hpp"

#include <redlock/detail/handles.hpp>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <vector>

namespace redlock::detail
{

namespace
{

/// Closes the manager handles of an execution context that is being destroyed. Services that were added later, such as
/// those of sockets, have ended then. A call may still be queued, since Asio's scheduler ends last, and no service is freed
/// before all have ended.
class context_watch final : public asio::execution_context::service
{
  public:
    static asio::execution_context::id id;

    explicit context_watch(asio::execution_context& context) : asio::execution_context::service{context} {}

    void add(const std::shared_ptr<manager_handle>& one)
    {
        const std::lock_guard lock{mutex_};
        std::erase_if(handles_, [](const std::weak_ptr<manager_handle>& other) { return other.expired(); });
        handles_.push_back(one);
    }

  private:
    void shutdown() noexcept override
    {
        std::vector<std::weak_ptr<manager_handle>> handles;
        {
            const std::lock_guard lock{mutex_};
            handles.swap(handles_);
        }
        for (const std::weak_ptr<manager_handle>& weak : handles)
        {
            if (const std::shared_ptr<manager_handle> one = weak.lock())
            {
                one->lose_context();
            }
        }
    }

    std::mutex mutex_;
    std::vector<std::weak_ptr<manager_handle>> handles_;
};

asio::execution_context::id context_watch::id;

template <class List>
void drop(List& states) noexcept
{
    states.clear_and_dispose([](lease_state* held) { held->let_go(); });
}

} // namespace

manager_handle::manager_handle(
    asio::any_io_executor executor, std::shared_ptr<const runtime::environment> outside)
    : executor_{std::move(executor)}, outside_{std::move(outside)}
{
}

manager_handle::~manager_handle()
{
    // No lease exists any more, because every lease state refers to its manager handle.
    pool_.clear_and_dispose([](lease_state* unused) { delete unused; });
}

void manager_handle::watch_context()
{
    asio::execution_context& context = asio::query(executor_, asio::execution::context);
    asio::use_service<context_watch>(context).add(shared_from_this());
}

void manager_handle::open(std::shared_ptr<manager::lock_service> service) noexcept
{
    const std::lock_guard lock{mutex_};
    service_ = std::move(service);
}

void manager_handle::close() noexcept
{
    lease_state_list dropped;
    std::shared_ptr<manager::lock_service> service;
    {
        const std::lock_guard lock{mutex_};
        service.swap(service_);
        dropped.swap(abandoned_);
    }
    drop(dropped);
}

void manager_handle::abort()
{
    struct aborting_step
    {
        std::shared_ptr<manager_handle> handle;
        manager::lock_service* service;

        void operator()() const
        {
            service->abort();
            handle->close();
        }
    };
    using queued = runtime::queued_function<aborting_step>;
    auto own = std::make_unique<queued>(aborting_step{shared_from_this(), nullptr});
    aborting_step& aborting = own->function;
    std::unique_ptr<runtime::queued_step> step = std::move(own);
    lease_state_list dropped;
    {
        const std::lock_guard lock{mutex_};
        if (!is_open())
        {
            return;
        }
        aborting.service = service_.get();
        service_->strand().post_prepared(step);
        aborting_ = true;
        if (!collecting_) // Otherwise they are released in a step ahead of this one.
        {
            dropped.swap(abandoned_);
        }
    }
    drop(dropped);
}

void manager_handle::lose_context() noexcept
{
    lease_state_list dropped;
    std::shared_ptr<manager::lock_service> service;
    asio::any_io_executor lost = asio::system_executor{};
    {
        const std::lock_guard lock{mutex_};
        service.swap(service_);
        dropped.swap(abandoned_);
        executor_.swap(lost);
    }
    drop(dropped);
}

manager_handle::entrance manager_handle::find_entrance() const noexcept
{
    const std::lock_guard lock{mutex_};
    if (!is_open())
    {
        return {false, nullptr};
    }
    return {true, runtime::runs_here(executor_) ? service_ : nullptr};
}

bool manager_handle::post(std::unique_ptr<runtime::queued_step>& step, manager::lock_service*& service)
{
    const std::lock_guard lock{mutex_};
    if (!is_open())
    {
        return false;
    }
    service = service_.get();
    service->strand().post_prepared(step);
    return true;
}

asio::any_io_executor manager_handle::executor() const noexcept
{
    const std::lock_guard lock{mutex_};
    return executor_;
}

void manager_handle::release_abandoned(lease_state& held) noexcept
{
    const std::lock_guard lock{mutex_};
    if (!is_open())
    {
        return;
    }
    held.keep();
    abandoned_.push_back(held);
    try
    {
        post_collection();
    }
    catch (const std::bad_alloc&)
    {
        // Out of memory: this lease is released along with the next one that is handed back, or expires. The keeper of
        // a kept lease tries again.
    }
}

void manager_handle::retry_abandoned()
{
    const std::lock_guard lock{mutex_};
    if (is_open() && !abandoned_.empty())
    {
        post_collection();
    }
}

/// Requires the mutex to be locked, so that the context can't be destroyed between the caller's check and the post.
void manager_handle::post_collection()
{
    if (!collecting_)
    {
        service_->strand().post([self = shared_from_this(), service = service_.get()]
                                { self->collect(*service); });
        collecting_ = true;
    }
}

void manager_handle::collect(manager::lock_service& service)
{
    lease_state_list abandoned;
    {
        const std::lock_guard lock{mutex_};
        abandoned.swap(abandoned_);
        collecting_ = false;
    }
    while (!abandoned.empty())
    {
        lease_state& held = abandoned.front();
        abandoned.pop_front();
        service.release_in_background(held);
        held.let_go();
    }
}

lease_state* manager_handle::take_lease_state()
{
    {
        const std::lock_guard lock{pool_mutex_};
        if (!pool_.empty())
        {
            lease_state& pooled = pool_.front();
            pool_.pop_front();
            --pooled_;
            return &pooled;
        }
    }
    return new lease_state;
}

void manager_handle::recycle(lease_state& unused) noexcept
{
    {
        const std::lock_guard lock{pool_mutex_};
        if (pooled_ < max_pooled)
        {
            pool_.push_front(unused);
            ++pooled_;
            return;
        }
    }
    delete &unused;
}

} // namespace redlock::detail
