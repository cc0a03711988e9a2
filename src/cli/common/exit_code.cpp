// SPDX-License-Identifier: BSL-1.0
// Maps the library's errors to exit codes.
#include "cli/common/exit_code.hpp"

namespace redlock::cli
{

exit_code exit_code_of(const error_code& error) noexcept
{
    if (!error)
    {
        return exit_code::success;
    }
    if (error.category() != error_category())
    {
        return exit_code::system_error;
    }
    switch (static_cast<errc>(error.value()))
    {
    case errc::held_by_other:
    case errc::validity_exhausted:
        return exit_code::held_by_other;
    case errc::no_quorum:
        return exit_code::no_quorum;
    case errc::lease_lost:
    case errc::not_held:
        return exit_code::lost;
    case errc::hold_limit_reached:
        return exit_code::hold_limit;
    case errc::invalid_resource:
    case errc::invalid_ttl:
    case errc::invalid_wait:
    case errc::invalid_min_validity:
    case errc::invalid_max_rounds:
    case errc::invalid_max_hold:
    case errc::invalid_schedule:
        return exit_code::usage;
    case errc::invalid_master:
    case errc::invalid_config:
        return exit_code::bad_masters;
    case errc::provisioning_failed:
        return exit_code::not_provisioned;
    case errc::unconfirmed:
    case errc::too_many_operations:
    case errc::closed:
        break;
    }
    return exit_code::system_error;
}

} // namespace redlock::cli
