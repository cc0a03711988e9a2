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

/// Closes the manager handles of an execution context that is being destroyed, before its other services are.
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

std::shared_ptr<manager::lock_service> manager_handle::close() noexcept
{
    lease_state_list dropped;
    std::shared_ptr<manager::lock_service> service;
    {
        const std::lock_guard lock{mutex_};
        service.swap(service_);
        dropped.swap(abandoned_);
    }
    dropped.clear_and_dispose([](lease_state* held) { held->let_go(); });
    return service;
}

void manager_handle::lose_context() noexcept
{
    const std::shared_ptr<manager::lock_service> service = close();
    const std::lock_guard lock{mutex_};
    executor_ = asio::system_executor{};
}

std::shared_ptr<manager::lock_service> manager_handle::service() const noexcept
{
    const std::lock_guard lock{mutex_};
    return service_;
}

asio::any_io_executor manager_handle::executor() const noexcept
{
    const std::lock_guard lock{mutex_};
    return executor_;
}

void manager_handle::release_abandoned(lease_state& held) noexcept
{
    const std::lock_guard lock{mutex_};
    if (service_ == nullptr)
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
    if (service_ != nullptr && !abandoned_.empty())
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
        const std::lock_guard lock{mutex_};
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
        const std::lock_guard lock{mutex_};
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
