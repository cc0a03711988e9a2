// SPDX-License-Identifier: BSL-1.0
// A user of the library.
#include "worker.hpp"

#include "cluster_run.hpp"
#include "permanent_refusals.hpp"
#include "process.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

using namespace std::chrono_literals;

namespace
{

/// Returns the code of a `system_error`.
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
    return {};
}

template <class Function>
auto cancellable(const call_ptr& by, Function function)
{
    return asio::bind_cancellation_slot(by->cancel.slot(), std::move(function));
}

} // namespace

template <class Function, class Begin>
void worker::start(const call_ptr& by, Function done, Begin begin)
{
    const plan& drawn = home_.cluster().drawn();
    const bool elsewhere = drawn.other_executors && draws_.one_in(2);
    auto may_throw =
        [this, elsewhere, done = std::move(done), one_in = drawn.throws_one_in](auto&&... values) mutable
    {
        check_executor(elsewhere);
        done(std::forward<decltype(values)>(values)...);
        if (one_in > 0 && draws_.one_in(one_in))
        {
            throw handler_failure{};
        }
    };
    auto token = cancellable(by, std::move(may_throw));
    if (elsewhere)
    {
        begin(asio::bind_executor(home_.other_executor(), std::move(token)));
    }
    else
    {
        begin(std::move(token));
    }
}

/// Usually none, otherwise any that is allowed.
std::chrono::milliseconds worker::draw_min_validity(std::chrono::milliseconds ttl)
{
    const std::chrono::milliseconds most = ttl - home_.cluster().drift_of(ttl);
    return draws_.one_in(4) ? std::chrono::milliseconds{draws_.below(static_cast<std::size_t>(most.count()))}
                            : 0ms;
}

/// Usually the defaults. Otherwise times that leave just enough for an extension to be repeated.
void worker::draw_schedule(keep_options& with)
{
    constexpr std::size_t often = 3;
    if (!draws_.one_in(often))
    {
        return;
    }
    const cluster_run& cluster = home_.cluster();
    const auto up_to = [this](std::chrono::milliseconds most)
    { return std::chrono::milliseconds{draws_.below(static_cast<std::size_t>(most.count()) + 1)}; };
    const std::chrono::milliseconds room =
        with.ttl - 2 * cluster.node_timeout_of(with.ttl) - cluster.drift_of(with.ttl) - 1ms;
    const std::chrono::milliseconds usual = cluster.margin_of(with.ttl);
    with.stop_margin = draws_.one_in(2) ? usual : up_to(std::min(3 * usual, room - 2ms));
    // The largest one whose jitter is allowed as well.
    const std::chrono::milliseconds longest = (room - *with.stop_margin) * 10 / 11;
    with.extend_every = draws_.one_in(4) ? 1ms + up_to(longest - 1ms) : longest;
}

std::chrono::milliseconds worker::margin_of(const keep_options& with) const
{
    return with.stop_margin.value_or(home_.cluster().margin_of(with.ttl));
}

void worker::check_schedule(error_code error)
{
    home_.cluster().watch().check(
        error != errc::invalid_schedule, "refusal", "{} can't use a schedule that is long enough",
        home_.name());
}

void worker::note_kept(const redlock::lease& held, const keep_options& with)
{
    const cluster_run& cluster = home_.cluster();
    const std::chrono::duration<double, clock::period> drift =
        std::chrono::duration<double, clock::period>{with.ttl} * cluster.drawn().drift_factor;
    home_.keeping().begin(
        held.owner_id(), held.valid_until(),
        {with.ttl - std::chrono::ceil<clock::duration>(drift) - 2ms, margin_of(with),
         cluster.node_timeout_of(with.ttl)},
        home_.now());
}

void worker::check_executor(bool elsewhere)
{
    home_.cluster().watch().check(
        home_.on_other_executor() == elsewhere, "executor", "{} is called on the wrong executor",
        home_.name());
}

/// As by a caller that passes the same report to every call.
std::shared_ptr<report> worker::used_report()
{
    told_ = told_ ? std::make_shared<report>(*told_) : std::make_shared<report>();
    return told_;
}

void worker::start()
{
    later();
}

void worker::later()
{
    if (!stopping_)
    {
        home_.after(draws_.between(0us, home_.cluster().drawn().does.pause), [this] { act(); });
    }
}

void worker::stop()
{
    stopping_ = true;
    if (under_way_ && !under_way_->done)
    {
        home_.cancel(under_way_);
    }
    if (has_ && !has_->ending)
    {
        give_back();
    }
}

/// Shutdowns are short, so few waits would begin during one.
void worker::on_shutdown()
{
    if (has_ && !has_->kept && !has_->ending && draws_.one_in(2))
    {
        home_.after(
            draws_.between(0us, 1ms),
            [this, held = has_]
            {
                if (has_ == held && !held->ending)
                {
                    await_expiry(held);
                }
            });
    }
}

void worker::act()
{
    if (stopping_)
    {
        return;
    }
    const plan& drawn = home_.cluster().drawn();
    const std::size_t resource = draws_.below(drawn.resources);
    const std::chrono::milliseconds ttl = drawn.ttls[draws_.below(drawn.ttls.size())];
    const workload& does = drawn.does;
    std::size_t drawn_verb = draws_.below(does.tries + does.acquires + does.keeps + does.bodies);
    const bool can_be_kept = home_.cluster().can_keep(ttl);
    if (drawn_verb < does.tries)
    {
        try_once(resource, ttl);
        return;
    }
    drawn_verb -= does.tries;
    if (drawn_verb < does.acquires || !can_be_kept)
    {
        acquire(resource, ttl);
        return;
    }
    drawn_verb -= does.acquires;
    if (drawn_verb < does.keeps)
    {
        keep(resource, ttl);
        return;
    }
    run_body(resource, ttl);
}

void worker::try_once(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::try_acquire, resource);
    const std::size_t endings = home_.endings();
    const auto told = used_report();
    const std::size_t pauses = home_.pauses();
    const std::chrono::milliseconds least = draw_min_validity(ttl);
    auto done = [this, self = under_way_, ttl, resource, told, endings, pauses, least,
                 moment = home_.cluster().watch().moment(),
                 truly_began = home_.cluster().world().now()](error_code error, redlock::lease won)
    {
        home_.end(self, error);
        check_acquire(truly_began, resource, *told, won);
        check_token(moment, told.get(), won);
        home_.cluster().watch().check_round(home_, *told, error, home_.pauses() > pauses);
        home_.cluster().watch().check_validity(home_, *told, error, ttl, least);
        on_won(std::make_shared<lease_interval>(
            lease_interval{.lease = std::move(won), .ttl = ttl, .endings = endings}));
    };
    start(
        under_way_, std::move(done),
        [&](auto token)
        {
            home_.locks().async_try_acquire(
                home_.cluster().resource_name(resource), {.ttl = ttl, .min_validity = least}, *told,
                std::move(token));
        });
}

void worker::acquire(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::acquire, resource);
    const std::size_t endings = home_.endings();
    const auto told = used_report();
    const clock::time_point began = home_.now();
    const std::size_t pauses = home_.pauses();
    const std::chrono::milliseconds wait{draws_.below(100)};
    const std::chrono::milliseconds least = draw_min_validity(ttl);
    auto done = [this, self = under_way_, ttl, resource, told, endings, began, pauses, wait, least,
                 moment = home_.cluster().watch().moment(),
                 truly_began = home_.cluster().world().now()](error_code error, redlock::lease won)
    {
        check_acquire(truly_began, resource, *told, won);
        check_token(moment, told.get(), won);
        const clock::duration took = home_.now() - began;
        home_.end(self, error);
        home_.read(*told);
        home_.cluster().watch().check_verdict(home_, *told, error);
        home_.cluster().watch().check_validity(home_, *told, error, ttl, least);
        home_.cluster().watch().check_back_off(home_, *told, took);
        home_.cluster().watch().check_patience(home_, error, is_hopeless(*told), wait, took);
        home_.cluster().watch().check_wait(
            home_, wait, home_.cluster().node_timeout_of(ttl), took, home_.pauses() > pauses);
        on_won(std::make_shared<lease_interval>(
            lease_interval{.lease = std::move(won), .ttl = ttl, .endings = endings}));
    };
    start(
        under_way_, std::move(done),
        [&](auto token)
        {
            home_.locks().async_acquire(
                home_.cluster().resource_name(resource), {.ttl = ttl, .wait = wait, .min_validity = least},
                *told, std::move(token));
        });
}

void worker::keep(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::acquire_kept, resource);
    const std::optional<std::chrono::milliseconds> most =
        draws_.one_in(4) ? std::optional{1ms + std::chrono::milliseconds{draws_.below(100)}} : std::nullopt;
    keep_options with{
        .ttl = ttl,
        .max_hold = most ? time_limit{*most} : time_limit{no_limit},
        .wait = std::chrono::milliseconds{draws_.below(100)}};
    draw_schedule(with);
    const auto told = used_report();
    auto done = [this, self = under_way_, with, most, told, began = home_.now(),
                 moment = home_.cluster().watch().moment()](error_code error, redlock::lease won)
    {
        check_schedule(error);
        home_.cluster().watch().check_patience(
            home_, error, is_hopeless(*told), with.wait.value(), home_.now() - began);
        home_.end(self, error);
        check_token(moment, nullptr, won);
        if (won)
        {
            note_kept(won, with);
        }
        on_won(std::make_shared<lease_interval>(
            lease_interval{std::move(won), 0, with.ttl, true, false, most, margin_of(with)}));
    };
    start(
        under_way_, std::move(done),
        [&](auto token)
        {
            home_.locks().async_acquire_kept(
                home_.cluster().resource_name(resource), with, *told, std::move(token));
        });
}

void worker::check_acquire(
    clock::time_point began, std::size_t resource, const report& told, const redlock::lease& won)
{
    oracle& watch = home_.cluster().watch();
    const int mine = home_.number();
    watch.check_reported(
        won ? watch.reports().reported(mine, began, won.owner_id(), told)
            : watch.reports().refused(mine, began, key_of(home_.cluster().resource_name(resource)), told));
}

void worker::check_token(const oracle::beginning& began, const report* told, const redlock::lease& won)
{
    if (won)
    {
        home_.cluster().watch().issued(home_, won, told, began, told == nullptr);
    }
}

void worker::on_won(const lease_interval_ptr& won)
{
    if (!won->lease)
    {
        later();
        return;
    }
    has_ = won;
    const auto margin = won->kept ? std::optional{won->margin} : std::nullopt;
    const auto hold_ends = won->max_hold ? std::optional{home_.now() + *won->max_hold} : std::nullopt;
    won->known_as = home_.cluster().watch().won(home_, won->lease, margin, won->kept, hold_ends);
    if (won->kept)
    {
        const call_ptr waiting = home_.begin(action::wait_lost);
        // It may be dropped before its loss is told.
        auto lost = [this, waiting, won,
                     owner_id = std::string{won->lease.owner_id()}](error_code error, error_code why)
        {
            home_.end(waiting, error ? error : why);
            if (!error)
            {
                home_.cluster().watch().lost_for_good(won->known_as);
                home_.expect_event(expected_event::loss, owner_id);
            }
            on_lost(won);
        };
        won->lease.async_wait_lost(cancellable(waiting, std::move(lost)));
    }
    else if (draws_.one_in(2))
    {
        await_expiry_soon(won);
    }
    if (stopping_)
    {
        give_back();
        return;
    }
    looks_ = 1 + draws_.below(3);
    hold_on();
}

/// Waits for the loss of a lease that isn't kept, from now on or from the middle of the hold on.
void worker::await_expiry_soon(const lease_interval_ptr& held)
{
    if (draws_.one_in(2))
    {
        await_expiry(held);
        return;
    }
    home_.after(
        draws_.between(0us, home_.cluster().drawn().does.work),
        [this, held]
        {
            if (has_ == held && !held->ending)
            {
                await_expiry(held);
            }
        });
}

void worker::await_expiry(const lease_interval_ptr& held)
{
    const call_ptr waiting = home_.begin(action::wait_lost);
    oracle& watch = home_.cluster().watch();
    watch.awaits_expiry(held->known_as);
    // By a shutdown, after which both not_held and closed are right.
    const auto is_released = [this, held]
    { return home_.endings() > held->endings && held->lease.valid_until() == clock::time_point{}; };
    auto lost = [this, waiting, held, is_released, &watch, released_before = is_released(),
                 began = home_.now(), pauses = home_.pauses()](error_code error, error_code why)
    {
        // The wait begins in a later step than its call, which may be that of the release.
        const bool at_once = home_.now() == began || home_.pauses() > pauses;
        const bool was_released = released_before || (at_once && is_released());
        home_.end(waiting, error ? error : why);
        watch.told_of_loss(held->known_as);
        watch.check_expiry(
            held->known_as, error, why, held->ending || was_released, home_.endings() > held->endings);
        if (!error)
        {
            watch.lost_for_good(held->known_as);
        }
    };
    held->lease.async_wait_lost(cancellable(waiting, std::move(lost)));
}

/// Some time passes under the lease.
void worker::hold_on()
{
    const clock::duration most = home_.cluster().drawn().does.work;
    home_.after(
        draws_.between(0us, most),
        [this, mine = has_, pauses = home_.pauses()]
        {
            if (has_ != mine || mine->ending)
            {
                return;
            }
            if (home_.now() > mine->lease.valid_until() + 1ms && home_.pauses() == pauses)
            {
                home_.expect_event(expected_event::loss, std::string{mine->lease.owner_id()});
            }
            if (--looks_ > 0)
            {
                extend();
                return;
            }
            give_back();
        });
}

void worker::extend()
{
    under_way_ = home_.begin(action::extend);
    const auto told = used_report();
    auto done = [this, self = under_way_, mine = has_, told, pauses = home_.pauses(),
                 owner_id = std::string{has_->lease.owner_id()}](error_code error)
    {
        home_.end(self, error);
        home_.read(*told);
        // The round may have begun before this call, which then shares it.
        const clock::time_point since = home_.cluster().world().now() - 2 * told->elapsed - 2ms;
        oracle& watch = home_.cluster().watch();
        watch.check_reported(
            home_.pauses() > pauses ? std::nullopt
                                    : watch.reports().reported(home_.number(), since, owner_id, *told));
        if (error == errc::no_quorum || error == errc::validity_exhausted)
        {
            home_.expect_event(expected_event::failed_extension, owner_id);
        }
        if (has_ == mine && !mine->ending)
        {
            hold_on();
        }
    };
    start(
        under_way_, std::move(done),
        [&](auto token) { has_->lease.async_extend(has_->ttl, *told, std::move(token)); });
}

void worker::on_lost(const lease_interval_ptr& lost)
{
    home_.cluster().watch().told_of_loss(lost->known_as);
    // The body uses some of the time that it has to stop.
    home_.after(
        draws_.one_in(2) ? draws_.between(0us, lost->margin) : 0us,
        [this, lost]
        {
            if (has_ == lost && !lost->ending)
            {
                give_back();
            }
        });
}

void worker::give_back()
{
    const lease_interval_ptr mine = has_;
    mine->ending = true;
    home_.cluster().watch().gave_back(mine->known_as);
    if (draws_.one_in(home_.cluster().drawn().does.drops_one_in))
    {
        home_.say(action::lease_dropped);
        mine->lease = {};
        done();
        return;
    }
    const call_ptr releasing = home_.begin(action::release);
    const std::string owner_id{mine->lease.owner_id()};
    const std::string resource{mine->lease.resource()};
    const auto told = used_report();
    home_.expect_event(expected_event::release, owner_id);
    auto released = [this, releasing, mine, owner_id, resource, told,
                     began = home_.cluster().world().now()](error_code error)
    {
        home_.end(releasing, error);
        home_.read(*told);
        oracle& watch = home_.cluster().watch();
        watch.check_reported(watch.reports().reported(home_.number(), began, owner_id, *told));
        home_.cluster().watch().check_release(home_, mine->lease, owner_id, resource, error);
        done();
    };
    start(
        releasing, std::move(released),
        [&](auto token) { mine->lease.async_release(*told, std::move(token)); });
}

void worker::done()
{
    has_.reset();
    later();
}

void worker::run_body(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::with_lock, resource);
    keep_options with{.ttl = ttl, .max_hold = no_limit, .wait = std::chrono::milliseconds{draws_.below(100)}};
    draw_schedule(with);
    auto done = [this, self = under_way_, with, began = home_.now()](std::exception_ptr thrown)
    {
        check_schedule(code_of(thrown));
        home_.cluster().watch().check_patience(
            home_, code_of(thrown), is_hopeless(thrown), with.wait.value(), home_.now() - began);
        home_.end(self, code_of(thrown));
        later();
    };
    const bool elsewhere = home_.cluster().drawn().other_executors && draws_.one_in(2);
    auto body = [this, with, elsewhere, moment = home_.cluster().watch().moment()](redlock::lease& held)
    {
        check_token(moment, nullptr, held);
        note_kept(held, with);
        return work(held, with, elsewhere);
    };
    auto called = cancellable(under_way_, std::move(done));
    if (elsewhere)
    {
        home_.locks().async_with_lock(
            home_.cluster().resource_name(resource), with, body,
            asio::bind_executor(home_.other_executor(), std::move(called)));
        return;
    }
    if (draws_.one_in(2))
    {
        home_.locks().async_with_lock(home_.cluster().resource_name(resource), with, body, std::move(called));
        return;
    }
    // Where nothing is called at once, time may pass between the acquire's end and the body's beginning.
    const auto later = asio::require(home_.context().get_executor(), asio::execution::blocking.never);
    home_.locks().async_with_lock(
        home_.cluster().resource_name(resource), with, body, asio::bind_executor(later, std::move(called)));
}

asio::awaitable<void> worker::work(redlock::lease& held, keep_options with, bool elsewhere)
{
    const std::chrono::milliseconds margin = margin_of(with);
    const std::chrono::milliseconds longest = 3 * home_.cluster().margin_of(with.ttl);
    oracle& watch = home_.cluster().watch();
    check_executor(elsewhere);
    watch.check(held.valid(), "late start", "{} begins a body under a lease that has lapsed", home_.name());
    const bool deaf = draws_.one_in(8);
    const std::optional<std::chrono::milliseconds> told_before =
        deaf || elsewhere ? std::nullopt : std::optional{margin};
    const std::size_t known_as = watch.won(home_, held, told_before, true);
    if (deaf)
    {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
    const clock::duration length = draws_.between(0us, 3 * home_.cluster().drawn().does.work);
    constexpr auto token = asio::as_tuple(asio::use_awaitable);
    const auto waited = co_await home_.async_wait(length, token);
    const error_code cancelled = std::get<0>(waited);
    if (cancelled)
    {
        watch.told_of_loss(known_as);
        if (!under_way_->cancelled)
        {
            home_.expect_event(expected_event::loss, std::string{held.owner_id()});
        }
        // Otherwise no further wait would be possible.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        // The body uses some of the time that it has to stop, or occasionally more than that.
        const clock::duration stops_in =
            draws_.between(0us, draws_.one_in(4) ? std::min(3 * margin, longest) : margin);
        co_await home_.async_wait(stops_in, token);
    }
    watch.gave_back(known_as);
    if (cancelled)
    {
        throw system_error{asio::error::operation_aborted};
    }
}

} // namespace redlock::test
