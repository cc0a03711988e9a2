// SPDX-License-Identifier: BSL-1.0
// A scheduler whose steps the test runs itself.
#pragma once

#include "runtime/scheduler.hpp"

#include <boost/asio/io_context.hpp>

namespace redlock::test
{

struct workbench
{
    boost::asio::io_context io;
    runtime::scheduler strand{io.get_executor()};
};

} // namespace redlock::test
