// SPDX-License-Identifier: BSL-1.0
// A simulated run for tests.
#include "simulation.hpp"

#include "api/create.hpp"
#include "manager/access.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace redlock::test
{

namespace
{

constexpr std::size_t max_steps = 2'000'000; // Of one call: more means that time stands still.

/// Returns the code of a `system_error`; empty for other exceptions.
error_code code_of(const std::exception_ptr& thrown)
{
    try
    {
        if (thrown)
        {
            std::rethrow_exception(thrown);
        }
    }
    catch (const system_error& error)
    {
        return error.code();
    }
    catch (...)
    {
        return {};
    }
    return {};
}

} // namespace

simulation::simulation(std::size_t masters, std::uint64_t seed)
    : environment_{std::make_shared<virtual_environment>(seed)}
{
    for (std::size_t index = 0; index < masters; ++index)
    {
        masters_.push_back(std::make_unique<sim_master>(world(), "run-of-" + std::to_string(index)));
        environment_->put(host_of(index), *masters_.back());
    }
}

simulation::~simulation()
{
    // The handlers in it refer to the masters.
    io_.reset();
}

void simulation::put(std::size_t address, std::size_t index)
{
    environment_->put(host_of(address), master(index));
}

config simulation::options() const
{
    config all;
    for (std::size_t index = 0; index < masters_.size(); ++index)
    {
        all.masters.emplace_back("redis://" + host_of(index));
    }
    return all;
}

config simulation::patient_options() const
{
    config with = options();
    with.response_timeout = 1min;
    return with;
}

lock_manager simulation::make_manager(config with)
{
    return make_manager(std::move(with), environment_);
}

lock_manager simulation::make_manager(config with, std::shared_ptr<const runtime::environment> outside)
{
    return detail::access::make_manager(
        api::create(io_->get_executor(), std::move(with), std::move(outside)));
}

lock_manager simulation::make_connected_manager(config with)
{
    lock_manager locks = make_manager(std::move(with));
    // A handshake waits for nothing but the network.
    run_until_idle();
    return locks;
}

auto simulation::lease_into(const outcome_ptr& to)
{
    auto done = [this, to](error_code error, redlock::lease won)
    {
        to->done = true;
        to->error = error;
        to->lease = std::move(won);
        to->at = now();
    };
    return asio::bind_cancellation_slot(to->cancel.slot(), std::move(done));
}

auto simulation::status_into(const outcome_ptr& to)
{
    auto done = [this, to](error_code error)
    {
        to->done = true;
        to->error = error;
        to->at = now();
    };
    auto cancellable = asio::bind_cancellation_slot(to->cancel.slot(), std::move(done));
    // An empty lease would end on the system's executor, whose threads know nothing of our time.
    return asio::bind_executor(io_->get_executor(), std::move(cancellable));
}

outcome_ptr simulation::acquire(lock_manager& locks, std::string resource, acquire_options with)
{
    auto result = std::make_shared<outcome>();
    locks.async_acquire(std::move(resource), with, result->report, lease_into(result));
    return result;
}

outcome_ptr simulation::try_acquire(lock_manager& locks, std::string resource, try_options with)
{
    auto result = std::make_shared<outcome>();
    locks.async_try_acquire(std::move(resource), with, result->report, lease_into(result));
    return result;
}

outcome_ptr simulation::acquire_kept(lock_manager& locks, std::string resource, keep_options with)
{
    auto result = std::make_shared<outcome>();
    locks.async_acquire_kept(std::move(resource), with, result->report, lease_into(result));
    return result;
}

outcome_ptr simulation::with_lock(lock_manager& locks, std::string resource, keep_options with, job& what)
{
    auto result = std::make_shared<outcome>();
    auto done = [this, result](std::exception_ptr thrown)
    {
        result->done = true;
        result->thrown = thrown;
        result->error = code_of(thrown);
        result->at = now();
    };
    auto body = [this, &what](redlock::lease& held) { return work(what, held); };
    auto cancellable = asio::bind_cancellation_slot(result->cancel.slot(), std::move(done));
    asio::any_io_executor where = io_->get_executor();
    if (what.called_later)
    {
        where = asio::require(where, asio::execution::blocking.never);
    }
    locks.async_with_lock(
        std::move(resource), with, result->report, body, asio::bind_executor(where, std::move(cancellable)));
    return result;
}

asio::awaitable<bool> simulation::pause(clock::duration length)
{
    // The wait belongs to the context, as with every other operation; the timer's own clock is never read.
    auto alarm = std::make_shared<asio::steady_timer>(*io_, asio::steady_timer::time_point::max());
    auto over = std::make_shared<bool>(false);
    auto ring = [weak = std::weak_ptr{alarm}, over]
    {
        if (const auto waiting = weak.lock())
        {
            *over = true;
            waiting->cancel();
        }
    };
    world().at(now() + length, event_kind::timer, std::move(ring));
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    co_await alarm->async_wait(token);
    co_return *over;
}

asio::awaitable<void> simulation::work(job& what, redlock::lease& held)
{
    ++what.starts;
    what.held = &held;
    what.was_valid = held.valid();
    if (what.ignores_cancellation)
    {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
    const bool done = co_await pause(what.works);
    if (!done)
    {
        what.cancelled_at = now();
        // Otherwise no further wait would be possible.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await pause(what.stops_in);
    }
    what.held = nullptr;
    what.ended = true;
    what.ended_at = now();
    if (what.throws)
    {
        std::rethrow_exception(what.throws);
    }
    if (!done)
    {
        throw system_error{asio::error::operation_aborted};
    }
}

outcome_ptr simulation::extend(redlock::lease& held, std::chrono::milliseconds ttl)
{
    auto result = std::make_shared<outcome>();
    held.async_extend(ttl, result->report, status_into(result));
    return result;
}

outcome_ptr simulation::release(redlock::lease& held)
{
    auto result = std::make_shared<outcome>();
    held.async_release(result->report, status_into(result));
    return result;
}

outcome_ptr simulation::wait_lost(redlock::lease& held)
{
    auto result = std::make_shared<outcome>();
    auto done = [this, result](error_code error, error_code why)
    {
        result->done = true;
        result->error = error;
        result->why = why;
        result->at = now();
    };
    auto cancellable = asio::bind_cancellation_slot(result->cancel.slot(), std::move(done));
    held.async_wait_lost(asio::bind_executor(io_->get_executor(), std::move(cancellable)));
    return result;
}

outcome_ptr simulation::shut_down(lock_manager& locks)
{
    auto result = std::make_shared<outcome>();
    locks.async_shutdown(status_into(result));
    return result;
}

bool simulation::step(clock::time_point limit)
{
    io_->restart();
    if (io_->poll_one() > 0)
    {
        return true;
    }
    if (world().empty() || world().next() > limit)
    {
        return false;
    }
    world().run_next();
    return true;
}

void simulation::run_until(clock::time_point when)
{
    run_until([] { return false; }, when - now());
}

bool simulation::run_until(const std::function<bool()>& holds, clock::duration bound)
{
    const clock::time_point limit = now() + bound;
    for (std::size_t steps = 0; steps < max_steps; ++steps)
    {
        if (holds())
        {
            return true;
        }
        if (!step(limit))
        {
            world().jump(std::max(limit - now(), clock::duration::zero()));
            return holds();
        }
    }
    throw std::runtime_error{"the simulation doesn't get on"};
}

void simulation::run_until_idle()
{
    for (std::size_t steps = 0; steps < max_steps; ++steps)
    {
        io_->restart();
        if (io_->poll_one() > 0)
        {
            continue;
        }
        if (world().quiet())
        {
            return;
        }
        world().run_next();
    }
    throw std::runtime_error{"the simulation never becomes idle"};
}

bool simulation::run_until_no_keys(clock::duration bound)
{
    run_until_idle();
    return run_until([this] { return keys() == 0; }, bound);
}

void simulation::forbid_queues()
{
    for (const auto& each : masters_)
    {
        each->refuse("ask", "-ERR this master knows no queue\r\n");
    }
}

std::size_t simulation::count(std::string_view what) const
{
    std::size_t count = 0;
    for (const auto& each : masters_)
    {
        count += each->count(what);
    }
    return count;
}

std::size_t simulation::keys() const
{
    std::size_t count = 0;
    for (const auto& each : masters_)
    {
        count += each->door == entrance::open ? each->key_count() : 0U;
    }
    return count;
}

} // namespace redlock::test
