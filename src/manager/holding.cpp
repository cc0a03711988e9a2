// SPDX-License-Identifier: BSL-1.0
// The state of a lease.
#include "manager/holding.hpp"

#include "manager/keeper.hpp"
#include "manager/manager_handle.hpp"

#include <redlock/detail/handles.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

namespace redlock::manager
{

holding::holding() = default;

holding::~holding() = default;

void holding::assign(
    std::shared_ptr<manager_handle> handle, const env::environment& outside, std::string_view prefix,
    std::string_view resource)
{
    assert(is_settled());
    handle_ = std::move(handle);
    key_.assign(prefix).append(resource);
    prefix_length_ = prefix.size();

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

void holding::hold(clock::time_point until, clock::time_point confirmed) noexcept
{
    assert(state() == holding_state::asked);
    confirmed_ = confirmed;
    valid_until_.store(until.time_since_epoch().count(), std::memory_order_release);
    state_.store(holding_state::held, std::memory_order_release);
}

void holding::extend(clock::time_point until, clock::time_point sent) noexcept
{
    assert(state() == holding_state::held);
    confirmed_ = std::max(confirmed_, sent);
    valid_until_.store(std::max(until, valid_until()).time_since_epoch().count(), std::memory_order_release);
}

bool holding::lose(error_code why) noexcept
{
    if (state() != holding_state::held)
    {
        return false;
    }
    lost_because_ = why;
    state_.store(holding_state::lost, std::memory_order_release);
    return true;
}

bool holding::disown() noexcept
{
    if (!lose(errc::lease_lost))
    {
        return false;
    }
    valid_until_.store(0, std::memory_order_release);
    return true;
}

error_code holding::why_not_extendable(clock::time_point now) const noexcept
{
    switch (state())
    {
    case holding_state::asked:
    case holding_state::released:
        return errc::not_held;
    case holding_state::lost:
        return lost_because_;
    case holding_state::held:
        break;
    }
    // Another client may hold a lease that has expired, even if its keys are still there.
    return valid_until() <= now ? error_code{errc::lease_lost} : error_code{};
}

bool holding::begin_release() noexcept
{
    if (state() != holding_state::held && state() != holding_state::lost)
    {
        return false;
    }
    valid_until_.store(0, std::memory_order_release);
    state_.store(holding_state::released, std::memory_order_release);
    return true;
}

void holding::recycle() noexcept
{
    assert(extending.empty() && watching.empty());
    assert(!kept && !expiry && unreported.empty());
    const std::shared_ptr<manager_handle> handle = std::exchange(handle_, nullptr);
    state_.store(holding_state::asked, std::memory_order_relaxed);
    release_asked_.store(false, std::memory_order_relaxed);
    valid_until_.store(0, std::memory_order_relaxed);
    handle->recycle(*this);
}

} // namespace redlock::manager

namespace redlock::detail
{

holding_ptr::holding_ptr(manager::holding* value) noexcept : value_{value}
{
    if (value_ != nullptr)
    {
        value_->keep();
    }
}

holding_ptr::holding_ptr(const holding_ptr& other) noexcept : holding_ptr{other.value_} {}

holding_ptr::~holding_ptr()
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

boost::asio::any_io_executor executor_of(const holding_ptr& held) noexcept
{
    if (!held)
    {
        return boost::asio::system_executor{};
    }
    return held->handle()->executor();
}

} // namespace redlock::detail
