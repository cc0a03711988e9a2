// SPDX-License-Identifier: BSL-1.0
// The operations of a manager: a coroutine for each, and its arguments.
#pragma once

#include <redlock/detail/completion.hpp>
#include <redlock/detail/handles.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/options.hpp>
#include <redlock/provision.hpp>
#include <redlock/report.hpp>

#include "runtime/tasks.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::manager
{

class lock_service;

/// The options by which an acquired lease is kept.
struct keep_order
{
    time_limit max_hold;
    std::optional<std::chrono::milliseconds> extend_every;
    std::optional<std::chrono::milliseconds> stop_margin;
};

inline constexpr std::size_t max_resource_size = 1024;

inline bool has_lockable_length(std::string_view resource) noexcept
{
    return !resource.empty() && resource.size() <= max_resource_size;
}

struct acquire_call
{
    std::string resource;
    acquire_options options;
    bool once; // One round only, whatever its result.
    std::optional<keep_order> keep;
    report* out; // May be null.
    detail::lease_completion done;
    std::uint64_t id;
};

struct extend_call
{
    detail::lease_state_ptr held;
    std::chrono::milliseconds ttl;
    report* out;
    detail::status_completion done;
    std::uint64_t id;
};

struct release_call
{
    detail::lease_state_ptr held;
    report* out;
    detail::status_completion done; // Empty for a release in the background.
    std::uint64_t id;
};

struct wait_lost_call
{
    detail::lease_state_ptr held;
    detail::loss_completion done;
    std::uint64_t id;
};

struct inspect_call
{
    std::string resource;
    detail::inspection_completion done;
    std::uint64_t id;
};

struct examine_call
{
    detail::examination_completion done;
    std::uint64_t id;
};

struct provision_call
{
    provision_options options;
    std::string group; // That is wanted; empty for any.
    provision_report* out;
    detail::status_completion done;
    std::uint64_t id;
};

struct shutdown_call
{
    detail::status_completion done;
    std::uint64_t id;
};

runtime::detached_task acquire(lock_service& service, acquire_call call);
runtime::detached_task extend(lock_service& service, extend_call call);
runtime::detached_task release(lock_service& service, release_call call);
runtime::detached_task wait_lost(lock_service& service, wait_lost_call call);
runtime::detached_task inspect(lock_service& service, inspect_call call);
runtime::detached_task examine(lock_service& service, examine_call call);
runtime::detached_task provision(lock_service& service, provision_call call);
runtime::detached_task shut_down(lock_service& service, shutdown_call call);

} // namespace redlock::manager
