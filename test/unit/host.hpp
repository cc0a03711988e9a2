// SPDX-License-Identifier: BSL-1.0
// A scheduler with the real environment, as a manager has it, and the timeout of the tests that use it.
#pragma once

#include "io/asio_environment.hpp"
#include "runtime/scheduler.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace redlock::test
{

/// Far more than any machine needs: a test that waits this long has failed.
constexpr std::chrono::seconds generous{30};

struct host
{
    explicit host(boost::asio::any_io_executor executor) : strand{std::move(executor)} {}

    io::asio_environment outside{};
    runtime::scheduler strand;
};

/// Operations in flight keep it alive.
inline std::shared_ptr<host> started(boost::asio::any_io_executor executor)
{
    auto one = std::make_shared<host>(std::move(executor));
    one->strand.start(one->outside, one);
    return one;
}

/// Runs a call as a step, as a manager does: at once on a thread of the executor, otherwise later.
template <class Function>
void enter(runtime::scheduler& strand, Function function)
{
    if (runtime::runs_here(strand.executor()))
    {
        strand.run_step(std::move(function), runtime::step_origin::user);
    }
    else
    {
        strand.post(std::move(function));
    }
}

} // namespace redlock::test
