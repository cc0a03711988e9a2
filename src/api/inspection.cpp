// SPDX-License-Identifier: BSL-1.0
// The result of an inspection: counts over all masters.
#include <redlock/inspection.hpp>

#include <algorithm>
#include <cassert>

namespace redlock
{

std::string_view inspection::name(std::size_t index) const
{
    assert(index < masters_.size());
    return (*names_)[index];
}

std::size_t inspection::answered() const noexcept
{
    return static_cast<std::size_t>(std::count_if(
        masters_.begin(), masters_.end(), [](const master_inspection& each) { return !each.reason; }));
}

std::size_t inspection::taken() const noexcept
{
    return static_cast<std::size_t>(std::count_if(
        masters_.begin(), masters_.end(), [](const master_inspection& each) { return each.has_key; }));
}

std::size_t inspection::count(std::string_view owner_id) const noexcept
{
    return static_cast<std::size_t>(std::count_if(
        masters_.begin(), masters_.end(),
        [owner_id](const master_inspection& each)
        { return each.has_key && each.owner_id.view() == owner_id; }));
}

std::string_view inspection::holder() const noexcept
{
    for (const master_inspection& each : masters_)
    {
        const std::string_view owner_id = each.owner_id.view();
        if (!owner_id.empty() && count(owner_id) >= quorum())
        {
            return owner_id;
        }
    }
    return {};
}

} // namespace redlock
