// SPDX-License-Identifier: BSL-1.0
// Whether an acquire may give up ahead of its wait, because masters refuse permanently.
#include "permanent_refusals.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace redlock::test
{

namespace
{

/// Refusals that no repetition changes. The library has its own list: src/net/command.cpp.
constexpr std::array<master_errc, 7> permanent{
    master_errc::authentication_failed,
    master_errc::no_permission,
    master_errc::cluster_node,
    master_errc::same_server,
    master_errc::other_group,
    master_errc::not_a_member,
    master_errc::no_database};

} // namespace

bool is_hopeless(const report& told)
{
    const auto refuses = [](const master_report& one)
    {
        return std::any_of(
            permanent.begin(), permanent.end(), [&](master_errc each) { return one.reason == each; });
    };
    const auto refused = std::count_if(told.masters().begin(), told.masters().end(), refuses);
    return told.masters().size() - static_cast<std::size_t>(refused) < told.quorum();
}

bool is_hopeless(const std::exception_ptr& thrown)
{
    try
    {
        if (thrown)
        {
            std::rethrow_exception(thrown);
        }
    }
    catch (const lock_error& error)
    {
        const std::string_view words{error.what()};
        return std::any_of(
            permanent.begin(), permanent.end(),
            [&](master_errc each)
            { return words.find(make_error_code(each).message()) != std::string_view::npos; });
    }
    catch (...)
    {
        return false;
    }
    return false;
}

} // namespace redlock::test
