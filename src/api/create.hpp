// SPDX-License-Identifier: BSL-1.0
// Creates a manager in a given environment, either the real one or that of a test.
#pragma once

#include <redlock/config.hpp>
#include <redlock/detail/handles.hpp>

#include "runtime/environment.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace redlock::api
{

/// Returns the real environment. Throws `system_error` if an option can't be used.
std::shared_ptr<const runtime::environment> real_environment(const config& options);

/// Throws `system_error` if an option can't be used.
detail::manager_handle_ptr create(
    boost::asio::any_io_executor executor, config options,
    std::shared_ptr<const runtime::environment> outside);

} // namespace redlock::api
