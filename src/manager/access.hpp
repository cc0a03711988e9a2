// SPDX-License-Identifier: BSL-1.0
// Access to the private members of the public API.
#pragma once

#include <redlock/detail/handles.hpp>
#include <redlock/inspection.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/report.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace redlock::detail
{

/// The friend of these classes. This header isn't installed, so a program can't create a lease.
struct access
{
    static lease make_lease(lease_state_ptr held) noexcept { return lease{std::move(held)}; }
    static lease_state_ptr state_of(const lease& of) noexcept { return of.held_; }
    static lock_manager make_manager(manager_handle_ptr handle) noexcept
    {
        return lock_manager{std::move(handle)};
    }
    static inspection
    make_inspection(std::shared_ptr<const master_names> names, std::vector<master_inspection> masters)
    {
        return {std::move(names), std::move(masters)};
    }
    static void
    assign(report& out, std::shared_ptr<const master_names> names, std::span<const master_report> votes)
    {
        out.assign(std::move(names), votes);
    }
};

} // namespace redlock::detail
