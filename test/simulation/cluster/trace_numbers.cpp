// SPDX-License-Identifier: BSL-1.0
// The numbers by which events enter the hash of a trace.
#include "trace_numbers.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace redlock::test
{

std::string_view name_of(action what) noexcept
{
    switch (what)
    {
    case action::try_acquire:
        return "try_acquire";
    case action::acquire:
        return "acquire";
    case action::acquire_kept:
        return "acquire_kept";
    case action::with_lock:
        return "with_lock";
    case action::extend:
        return "extend";
    case action::release:
        return "release";
    case action::wait_lost:
        return "wait_lost";
    case action::inspect:
        return "inspect";
    case action::examine:
        return "examine";
    case action::shutdown:
        return "shutdown";
    case action::wrong_request:
        return "wrong request";
    case action::lease_won:
        return "holds the lease";
    case action::lease_given_up:
        return "gives the lease up";
    case action::lease_dropped:
        return "drops a lease";
    case action::killed:
        return "is killed";
    case action::killed_and_reset:
        return "is killed, its connections are reset";
    case action::manager_dropped:
        return "drops its manager";
    case action::notified:
        return "is notified";
    case action::own_resource_acquired:
        return "acquires its own resource";
    case action::probed:
        return "probes";
    }
    return "";
}

std::uint64_t command_number(std::string_view what)
{
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 18> numbers{{
        {"SET", 1},
        {"extend", 2},
        {"release", 3},
        {"turn", 4},
        {"EVAL", 5},
        {"EVALSHA", 6},
        {"HELLO", 7},
        {"AUTH", 8},
        {"CLIENT ID", 9},
        {"CLIENT SETNAME", 10},
        {"CLIENT KILL", 11},
        {"may kill?", 12},
        {"SELECT", 13},
        {"INFO", 14},
        {"TIME", 15},
        {"SCRIPT LOAD", 16},
        {"SCRIPT FLUSH", 17},
        {"CONFIG", 18},
    }};
    const auto* const found =
        std::find_if(numbers.begin(), numbers.end(), [what](const auto& each) { return each.first == what; });
    if (found == numbers.end())
    {
        throw std::logic_error{"the trace has no number for the command " + std::string{what}};
    }
    return found->second;
}

std::uint64_t category_number(const error_code& error) noexcept
{
    if (!error)
    {
        return 0;
    }
    const std::array<const boost::system::error_category*, 6> numbered_from_one{
        &error_category(),
        &master_category(),
        &boost::system::system_category(),
        &boost::system::generic_category(),
        &boost::asio::error::get_misc_category(),
        &boost::asio::error::get_netdb_category()};
    const auto* const found = std::find_if(
        numbered_from_one.begin(), numbered_from_one.end(),
        [&](const auto* each) { return *each == error.category(); });
    return static_cast<std::uint64_t>(found - numbered_from_one.begin()) + 1;
}

} // namespace redlock::test
