// SPDX-License-Identifier: BSL-1.0
// The state of a lease.
#include "manager/lease_state.hpp"

#include "manager/access.hpp"
#include "manager/keeper.hpp"
#include "manager/manager_handle.hpp"

#include <redlock/detail/handles.hpp>

#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

namespace redlock::detail
{

report failed_extension::to_report() const
{
    report told;
    told.operation = operation::extend;
    told.result = result;
    told.rounds = 1;
    told.elapsed = elapsed;
    told.node_timeout = node_timeout;
    access::assign(told, names, votes);
    return told;
}

lease_state::lease_state() = default;

lease_state::~lease_state() = default;

void lease_state::assign(
    std::shared_ptr<manager_handle> handle, const runtime::environment& outside, std::string_view prefix,
    std::string_view resource)
{
    assert(nothing_outstanding());
    handle_ = std::move(handle);
    key_.assign(prefix).append(resource);
    prefix_length_ = static_cast<std::uint16_t>(prefix.size());

    std::array<std::byte, owner_id_length / 2> random{};
    outside.random(random);
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t at = 0; at < random.size(); ++at)
    {
        const auto value = std::to_integer<unsigned>(random[at]);
        owner_id_[2 * at] = digits[value >> 4U];
        owner_id_[2 * at + 1] = digits[value & 15U];
    }
}

void lease_state::hold(clock::time_point until, clock::time_point confirmed) noexcept
{
    assert(phase() == lease_phase::pending);
    confirmed_ = confirmed;
    valid_until_.store(until.time_since_epoch().count(), std::memory_order_release);
    phase_.store(lease_phase::held, std::memory_order_release);
}

void lease_state::extend(clock::time_point until, clock::time_point sent) noexcept
{
    assert(phase() == lease_phase::held);
    confirmed_ = std::max(confirmed_, sent);
    valid_until_.store(std::max(until, valid_until()).time_since_epoch().count(), std::memory_order_release);
}

bool lease_state::lose(errc why) noexcept
{
    if (phase() != lease_phase::held)
    {
        return false;
    }
    lost_because_ = why;
    phase_.store(lease_phase::lost, std::memory_order_release);
    return true;
}

bool lease_state::disown() noexcept
{
    if (!lose(errc::lease_lost))
    {
        return false;
    }
    valid_until_.store(0, std::memory_order_release);
    return true;
}

error_code lease_state::why_not_extendable(clock::time_point now) const noexcept
{
    switch (phase())
    {
    case lease_phase::pending:
    case lease_phase::released:
        return errc::not_held;
    case lease_phase::lost:
        return lost_because_;
    case lease_phase::held:
        break;
    }
    // Another client may hold a lease that has expired, even if its keys are still there.
    return valid_until() <= now ? error_code{errc::lease_lost} : error_code{};
}

bool lease_state::begin_release() noexcept
{
    if (phase() != lease_phase::held && phase() != lease_phase::lost)
    {
        return false;
    }
    valid_until_.store(0, std::memory_order_release);
    phase_.store(lease_phase::released, std::memory_order_release);
    return true;
}

void lease_state::recycle() noexcept
{
    assert(extending.empty() && watching.empty());
    assert(!kept && !expiry && unreported.empty());
    const std::shared_ptr<manager_handle> handle = std::exchange(handle_, nullptr);
    phase_.store(lease_phase::pending, std::memory_order_relaxed);
    release_requested_.store(false, std::memory_order_relaxed);
    fencing_token = 0;
    loss_explained_.store(false, std::memory_order_relaxed);
    failed.reset();
    valid_until_.store(0, std::memory_order_relaxed);
    handle->recycle(*this);
}

lease_state_ptr::lease_state_ptr(lease_state* value) noexcept : value_{value}
{
    if (value_ != nullptr)
    {
        value_->keep();
    }
}

lease_state_ptr::lease_state_ptr(const lease_state_ptr& other) noexcept : lease_state_ptr{other.value_} {}

lease_state_ptr::~lease_state_ptr()
{
    if (value_ != nullptr)
    {
        value_->let_go();
    }
}

boost::asio::any_io_executor executor_of(const manager_handle_ptr& handle) noexcept
{
    return handle ? handle->executor() : boost::asio::any_io_executor{boost::asio::system_executor{}};
}

boost::asio::any_io_executor executor_of(const lease_state_ptr& held) noexcept
{
    if (!held)
    {
        return boost::asio::system_executor{};
    }
    return held->handle()->executor();
}

} // namespace redlock::detail
