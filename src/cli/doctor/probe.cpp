// SPDX-License-Identifier: BSL-1.0
// Probes with a manager of that one master. Its quorum is one, so each report has this master's vote alone.
#include "cli/doctor/probe.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace redlock::cli
{

namespace
{

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr int max_tries = 3;
constexpr milliseconds first_ttl{4000};
// Longer than the first ttl: an extension that doesn't lengthen the ttl calls no PEXPIRE.
constexpr milliseconds extended_ttl{5000};

std::string random_resource()
{
    std::random_device entropy;
    return fmt::format("redlock-doctor-{:08x}{:08x}{:08x}", entropy(), entropy(), entropy());
}

config patient(config options)
{
    options.node_timeout = probe_timeout;
    options.response_timeout = probe_timeout;
    return options;
}

/// Reads the only vote of a round. A refusal means that the key is missing: no other client has this random key.
probe_outcome outcome_of(const report& round)
{
    probe_outcome result;
    result.tried = true;
    if (round.masters().empty())
    {
        result.reason = round.result;
        return result;
    }
    const master_report& only = round.masters().front();
    result.reason = only.reason;
    result.detail = only.detail.view();
    result.key_gone = !only.reason && (only.vote == vote::denied || round.already_gone());
    if (result.succeeded())
    {
        result.took = only.elapsed;
    }
    return result;
}

probe_outcome outcome_of(const inspection& answers, std::string_view owner)
{
    probe_outcome result;
    result.tried = true;
    const master_inspection& only = answers.masters().front();
    result.reason = only.reason;
    result.detail = only.detail.view();
    result.key_gone = !only.reason && !owner.empty() && only.owner_id.view() != owner;
    return result;
}

/// Acquires, inspects, extends and releases one lock.
asio::awaitable<probe> try_once(lock_manager& locks)
{
    probe found;
    const std::string resource = random_resource();
    error_code error;
    auto into_error = asio::redirect_error(asio::use_awaitable, error);
    report round;
    lease held = co_await locks.async_try_acquire(resource, first_ttl, round, into_error);
    found.at(probe_step::acquire) = outcome_of(round);
    // Also without a lock, since more than one command may be missing.
    const inspection seen = co_await locks.async_inspect(resource, into_error);
    if (!seen.masters().empty())
    {
        found.at(probe_step::inspect) = outcome_of(seen, held.owner_id());
    }
    if (held)
    {
        co_await held.async_extend(extended_ttl, round, into_error);
        found.at(probe_step::extend) = outcome_of(round);
        co_await held.async_release(round, into_error);
        found.at(probe_step::release) = outcome_of(round);
    }
    co_return found;
}

/// Adds a try: keeps the faster time of each step; a failure replaces a time.
void add(probe& all, const probe& once)
{
    for (std::size_t step = 0; step < probe_steps; ++step)
    {
        probe_outcome& so_far = all.steps.at(step);
        const std::optional<std::chrono::nanoseconds> before = so_far.took;
        so_far = once.steps.at(step);
        if (before && so_far.took)
        {
            so_far.took = std::min(*before, *so_far.took);
        }
    }
    ++all.tries;
}

} // namespace

bool probe::succeeded() const noexcept
{
    return std::all_of(
        steps.begin(), steps.end(), [](const probe_outcome& each) { return each.succeeded(); });
}

std::chrono::nanoseconds probe::slowest() const noexcept
{
    std::chrono::nanoseconds most{0};
    for (const probe_outcome& each : steps)
    {
        most = std::max(most, each.took.value_or(std::chrono::nanoseconds{0}));
    }
    return most;
}

asio::awaitable<probe> probe_master(config options)
{
    probe all;
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    lock_manager locks{executor, patient(std::move(options))};
    bool once_more = true;
    while (once_more)
    {
        const probe once = co_await try_once(locks);
        add(all, once);
        once_more = all.succeeded() && all.slowest() >= probe_is_slow && all.tries < max_tries;
    }
    co_return all;
}

asio::awaitable<bool> answers_inspection(config options)
{
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    lock_manager locks{executor, patient(std::move(options))};
    const std::string resource = random_resource();
    error_code error;
    auto into_error = asio::redirect_error(asio::use_awaitable, error);
    const inspection seen = co_await locks.async_inspect(resource, into_error);
    co_return !error && seen.answered() == 1;
}

} // namespace redlock::cli
