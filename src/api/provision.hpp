// SPDX-License-Identifier: BSL-1.0
// Starts a run of provisioning in a given environment, either the real one or that of a test.
#pragma once

#include <redlock/provision.hpp>

#include "runtime/environment.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace redlock::api
{

/// Throws `system_error` if an option can't be used; `done` is then unchanged.
void provision(
    const boost::asio::any_io_executor& executor, const config& masters, provision_options options,
    std::shared_ptr<const runtime::environment> outside, provision_report* out,
    detail::status_completion& done);

} // namespace redlock::api
