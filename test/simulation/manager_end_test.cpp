// SPDX-License-Identifier: BSL-1.0
// Operations that found the manager before its destruction, and begin after it. That takes several threads of the manager's
// context, and chance, so these tests enter the manager themselves.
#include "simulation.hpp"

#include "manager/access.hpp"
#include "manager/enter.hpp"
#include "manager/lock_service.hpp"
#include "manager/manager_handle.hpp"
#include "manager/operations/operations.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace redlock::test
{

namespace
{

/// A manager that is destroyed while other threads enter it.
struct ending_manager
{
    explicit ending_manager(simulation& in) : sim{in}
    {
        const auto handle =
            std::make_shared<manager::manager_handle>(sim.executor(), sim.shared_environment());
        service = std::make_shared<manager::lock_service>(
            handle, sim.executor(), sim.options(), sim.shared_environment());
        service->open();
        handle->open(service);
        locks = detail::access::make_manager(handle);
        sim.run_until_idle();
    }

    /// Begins an operation as a call does that has found the manager before its destruction.
    outcome_ptr wait_lost_late(detail::lease_state_ptr held)
    {
        auto result = std::make_shared<outcome>();
        begin(
            manager::wait_lost,
            manager::wait_lost_call{
                std::move(held),
                detail::type_erase<void(error_code, error_code)>(
                    [result](error_code error, error_code)
                    {
                        result->done = true;
                        result->error = error;
                    },
                    sim.executor()),
                late});
        return result;
    }
    outcome_ptr release_late(detail::lease_state_ptr held)
    {
        auto result = std::make_shared<outcome>();
        begin(
            manager::release,
            manager::release_call{
                std::move(held), nullptr,
                detail::type_erase<void(error_code)>(
                    [result](error_code error)
                    {
                        result->done = true;
                        result->error = error;
                    },
                    sim.executor()),
                late});
        return result;
    }

    /// Destroys the manager when the acquire has succeeded. Returns the state of its lease.
    detail::lease_state_ptr end_after(const outcome_ptr& won)
    {
        REQUIRE(sim.finish(won));
        locks.reset();
        return detail::access::state_of(won->lease);
    }

    template <class Call>
    void begin(runtime::detached_task (*operation)(manager::lock_service&, Call), Call call)
    {
        service->strand().post([&entered = *service,
                                begun = manager::operation_start<Call>{operation, std::move(call)}]() mutable
                               { begun(entered); });
    }

    static constexpr std::uint64_t late = 1000; // Its number.

    simulation& sim;
    std::shared_ptr<manager::lock_service> service;
    std::optional<lock_manager> locks;
};

} // namespace

TEST_CASE("a wait for the loss that begins after the manager's destruction ends")
{
    simulation sim{5};
    ending_manager ending{sim};
    const outcome_ptr won = sim.acquire(*ending.locks, "stock", {.ttl = 10s});
    const detail::lease_state_ptr held = ending.end_after(won);
    const outcome_ptr late = ending.wait_lost_late(held);
    CHECK(sim.finish(late));
    CHECK(late->error == asio::error::operation_aborted);
}

TEST_CASE("a release that begins after the manager's destruction is aborted")
{
    simulation sim{5};
    ending_manager ending{sim};
    const outcome_ptr won = sim.acquire(*ending.locks, "stock", {.ttl = 10s});
    const detail::lease_state_ptr held = ending.end_after(won);
    const outcome_ptr late = ending.release_late(held);
    CHECK(sim.finish(late));
    CHECK(late->error == asio::error::operation_aborted);
}

} // namespace redlock::test
