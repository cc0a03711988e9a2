// SPDX-License-Identifier: BSL-1.0
// Cancellation of an operation, from any thread.
#pragma once

#include <redlock/detail/completion.hpp>

#include "manager/enter.hpp"
#include "manager/lock_service.hpp"
#include "manager/manager_handle.hpp"

#include <boost/asio/cancellation_type.hpp>

#include <cstdint>
#include <memory>
#include <variant>

namespace redlock::api
{

/// Forwards cancellation to the strand. A signal may be emitted on any thread, also after the operation has completed
/// or the manager was destroyed, which has no effect.
template <class Signature>
void watch_cancellation(
    const std::shared_ptr<manager::manager_handle>& handle, detail::completion<Signature>& done,
    std::uint64_t operation)
{
    boost::asio::cancellation_slot slot = done.handler.get_cancellation_slot();
    if (!slot.is_connected())
    {
        return;
    }
    slot.assign(
        [weak = std::weak_ptr<manager::manager_handle>{handle},
         operation](boost::asio::cancellation_type type)
        {
            const std::shared_ptr<manager::manager_handle> strong = weak.lock();
            if (strong && type != boost::asio::cancellation_type::none)
            {
                manager::enter(
                    *strong, [operation](manager::lock_service& service) { service.cancel(operation); });
            }
        });
}

template <class... Completions>
void watch_cancellation(
    const std::shared_ptr<manager::manager_handle>& handle, std::variant<Completions...>& done,
    std::uint64_t operation)
{
    std::visit([&](auto& one) { watch_cancellation(handle, one, operation); }, done);
}

} // namespace redlock::api
