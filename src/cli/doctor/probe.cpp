// SPDX-License-Identifier: BSL-1.0
// Probes with a manager of that one master. Its quorum is one, so each report has this master's vote alone.
#include "cli/doctor/probe.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <variant>

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

/// What the events of the probe's manager tell of a client that waits.
struct waiting_news
{
    explicit waiting_news(const asio::any_io_executor& executor) : changed{executor, clock::time_point::max()}
    {
    }

    void take(const event& what)
    {
        const auto* const told = std::get_if<master_warning>(&what);
        if (told != nullptr && is_watched && !refusal)
        {
            if (told->what == risk::limited_queue)
            {
                refusal = fmt::format("it refuses the scripts of the queue ({})", told->detail);
            }
            else if (told->what == risk::release_refused)
            {
                refusal = "it refuses the script by which a release wakes a client that waits";
            }
        }
        is_queued = is_queued || std::holds_alternative<acquire_queued>(what);
        changed.cancel();
    }

    asio::basic_waitable_timer<clock> changed; // Cancelled at each event.
    bool is_watched = false;                   // Whether refusals are those of the client that waits.
    bool is_queued = false;
    bool is_over = false; // The acquire of the client that waits.
    lease won{};
    std::optional<std::string> refusal{};
};

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

/// Lets a client wait for a lock until the queue has entered it, or the master has refused something; then releases the lock,
/// and waits until that client has it. Returns what was wrong; empty for nothing.
asio::awaitable<std::optional<std::string>> wait_once(lock_manager& locks, std::shared_ptr<waiting_news> news)
{
    const std::string resource = random_resource();
    error_code error;
    auto into_error = asio::redirect_error(asio::use_awaitable, error);
    lease held = co_await locks.async_try_acquire(resource, first_ttl, into_error);
    if (!held)
    {
        co_return "it refuses a second lock";
    }
    news->is_watched = true;
    const acquire_options patient_one{.ttl = first_ttl, .wait = probe_timeout};
    locks.async_acquire(
        resource, patient_one,
        [news](error_code, lease won)
        {
            news->won = std::move(won);
            news->is_over = true;
            news->changed.cancel();
        });
    while (!news->is_queued && !news->refusal && !news->is_over)
    {
        co_await news->changed.async_wait(into_error);
    }
    const bool was_entered = news->is_queued;
    report released;
    co_await held.async_release(released, into_error);
    while (!news->is_over)
    {
        co_await news->changed.async_wait(into_error);
    }
    lease won = std::move(news->won);
    if (won)
    {
        co_await won.async_release(into_error);
    }
    if (news->refusal)
    {
        co_return news->refusal;
    }
    if (!was_entered)
    {
        co_return "it enters no client that waits for a lock into a queue";
    }
    if (!won.owner_id().empty() && !released.result)
    {
        co_return std::nullopt;
    }
    co_return "a client that waited for a lock didn't get it when that was released";
}

} // namespace

void probe::add(const probe& once)
{
    for (std::size_t step = 0; step < probe_steps; ++step)
    {
        probe_outcome& so_far = steps.at(step);
        const std::optional<std::chrono::nanoseconds> before = so_far.took;
        so_far = once.steps.at(step);
        if (before && so_far.took)
        {
            so_far.took = std::min(*before, *so_far.took);
        }
    }
    ++tries;
}

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

asio::awaitable<probe> probe_master(config options, bool tries_queue)
{
    probe all;
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    // Events may be delivered after the manager's end.
    const auto news = std::make_shared<waiting_news>(executor);
    options.observer.on_event = [news](const event& what) { news->take(what); };
    lock_manager locks{executor, patient(std::move(options))};
    bool once_more = true;
    while (once_more)
    {
        const probe once = co_await try_once(locks);
        all.add(once);
        once_more = all.succeeded() && all.slowest() >= probe_is_slow && all.tries < max_tries;
    }
    if (all.succeeded() && tries_queue)
    {
        all.queue_refusal = co_await wait_once(locks, news);
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
