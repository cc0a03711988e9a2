// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of a process, as its manager counts them.
#include "outstanding_keys.hpp"

#include "process.hpp"

#include "manager/lock_service.hpp"
#include "manager/manager_handle.hpp"

#include <boost/asio/post.hpp>

namespace redlock::test
{

std::optional<std::size_t> outstanding_keys(process& of)
{
    std::optional<std::size_t> counted;
    const auto count = [&]
    {
        const auto handle = of.handle();
        // Null unless it is called in a handler of the manager's executor.
        const auto service = handle ? handle->find_entrance().here : nullptr;
        counted = service ? std::optional{service->outstanding()} : std::nullopt;
    };
    boost::asio::post(of.context(), count);
    of.context().restart();
    of.context().poll();
    return counted;
}

} // namespace redlock::test
