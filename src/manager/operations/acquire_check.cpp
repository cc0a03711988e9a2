// SPDX-License-Identifier: BSL-1.0
// Checks the arguments of an acquire.
#include "manager/operations/acquire_check.hpp"

#include <utility>

namespace redlock::manager
{

refused_argument check(const lock_service& service, const acquire_call& call)
{
    if (!has_lockable_length(call.resource))
    {
        return {
            errc::invalid_resource, "a resource name of " + std::to_string(call.resource.size()) +
                                        " bytes can't be used: it must have from 1 to " +
                                        std::to_string(max_resource_size) + " bytes"};
    }
    if (service.is_reserved(call.resource))
    {
        return {
            errc::invalid_resource,
            "this resource name can't be used: its key would begin with redlock-queue:, or contain "
            ":redlock-guard, :redlock-fence or :redlock-members, as the library's own keys do"};
    }
    const acquire_options& options = call.options;
    const core::timing given = service.timing(options.ttl, options.min_validity);
    if (std::string complaint = core::ttl_complaint(given); !complaint.empty())
    {
        return {errc::invalid_ttl, std::move(complaint)};
    }
    if (std::string complaint = core::min_validity_complaint(given); !complaint.empty())
    {
        return {errc::invalid_min_validity, std::move(complaint)};
    }
    if (options.wait.value() < std::chrono::milliseconds{0})
    {
        return {
            errc::invalid_wait, "a wait of " + std::to_string(options.wait.value().count()) +
                                    " ms can't be used: it must be 0 ms or more, or redlock::no_limit"};
    }
    if (options.max_rounds == 0U)
    {
        return {errc::invalid_max_rounds, "a max_rounds of 0 can't be used: it must be 1 or more, or empty"};
    }
    if (call.keep)
    {
        const core::lease_schedule schedule =
            service.schedule(options.ttl, call.keep->extend_every, call.keep->stop_margin);
        if (std::string complaint = core::schedule_complaint(schedule); !complaint.empty())
        {
            return {errc::invalid_schedule, std::move(complaint)};
        }
        if (call.keep->max_hold.value() <= std::chrono::milliseconds{0})
        {
            return {
                errc::invalid_max_hold,
                "a max_hold of " + std::to_string(call.keep->max_hold.value().count()) +
                    " ms can't be used: it must be 1 ms or more, or redlock::no_limit"};
        }
    }
    return {};
}

} // namespace redlock::manager
