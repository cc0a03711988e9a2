// SPDX-License-Identifier: BSL-1.0
// A manager with that one master: its quorum is one, so each report is what this master said.
#include "cli/probe.hpp"

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

constexpr int most_tries = 3;
constexpr milliseconds first_ttl{4000};
// Longer than the first one: an extension that shortened nothing would call no PEXPIRE.
constexpr milliseconds extended_ttl{5000};

std::string random_resource()
{
    std::random_device entropy;
    return fmt::format("redlock-doctor-{:08x}{:08x}{:08x}", entropy(), entropy(), entropy());
}

config patient(config options)
{
    options.node_timeout = probe_timeout;
    options.dead_after = probe_timeout;
    return options;
}

/// A round's only vote. A master that said no in it has lost the key, or never set it: the resource is random.
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
    result.key_gone = !only.reason && (only.vote == vote::held || round.already_gone());
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

/// One lock, from its SET to its release.
asio::awaitable<probe> try_once(lock_manager& locks)
{
    probe found;
    const std::string resource = random_resource();
    error_code error;
    auto into_error = asio::redirect_error(asio::use_awaitable, error);
    report round;
    lease held = co_await locks.async_try_acquire(resource, first_ttl, round, into_error);
    found.at(probe_step::acquire) = outcome_of(round);
    // Also without a lock: more than one thing may be missing.
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

/// Keeps the faster of two measurements; a failure replaces any.
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
        once_more = all.succeeded() && all.slowest() >= probe_is_slow && all.tries < most_tries;
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
