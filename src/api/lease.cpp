// SPDX-License-Identifier: BSL-1.0
// The public API of a lease.
#include <redlock/lease.hpp>

#include "core/validity.hpp"
#include "manager/lease_state.hpp"
#include "manager/manager_handle.hpp"

#include <utility>

namespace redlock
{

using manager::lease_phase;

lease::~lease()
{
    if (*this && !held_->release_requested())
    {
        held_->handle()->release_abandoned(*held_);
    }
}

lease& lease::operator=(lease&& other) noexcept
{
    // Self-move leaves it unchanged.
    lease given{std::move(other)};
    std::swap(held_, given.held_);
    return *this;
}

lease::operator bool() const noexcept
{
    return held_ && held_->phase() != lease_phase::released;
}

std::string_view lease::resource() const noexcept
{
    return held_ ? held_->resource() : std::string_view{};
}

std::string_view lease::owner_id() const noexcept
{
    return held_ ? held_->owner_id() : std::string_view{};
}

std::optional<std::uint64_t> lease::fencing_token() const noexcept
{
    return held_ && held_->fencing_token != 0 ? std::optional{held_->fencing_token} : std::nullopt;
}

clock::time_point lease::valid_until() const noexcept
{
    return held_ ? held_->valid_until() : clock::time_point{};
}

std::chrono::nanoseconds lease::remaining() const noexcept
{
    if (!held_ || held_->phase() != lease_phase::held)
    {
        return clock::duration::zero();
    }
    return core::remaining(held_->valid_until(), held_->handle()->now());
}

bool lease::valid() const noexcept
{
    return remaining() > clock::duration::zero();
}

} // namespace redlock
