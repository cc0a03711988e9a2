// SPDX-License-Identifier: BSL-1.0
// A user of the library.
#include "worker.hpp"

#include "cluster_run.hpp"
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
    const auto told = std::make_shared<report>();
    const std::size_t pauses = home_.pauses();
    auto done = [this, self = under_way_, ttl, told, pauses](error_code error, redlock::lease won)
    {
        home_.end(self, error);
        home_.cluster().watch().check_round(home_, *told, error, home_.pauses() > pauses);
        on_won(std::make_shared<lease_interval>(lease_interval{std::move(won), 0, ttl}));
    };
    home_.locks().async_try_acquire(
        home_.cluster().resource_name(resource), {.ttl = ttl}, *told,
        cancellable(under_way_, std::move(done)));
}

void worker::acquire(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::acquire, resource);
    const auto told = std::make_shared<report>();
    const clock::time_point began = home_.now();
    const std::size_t pauses = home_.pauses();
    const std::chrono::milliseconds wait{draws_.below(100)};
    auto done =
        [this, self = under_way_, ttl, told, began, pauses, wait](error_code error, redlock::lease won)
    {
        const clock::duration took = home_.now() - began;
        home_.end(self, error);
        home_.read(*told);
        home_.cluster().watch().check_verdict(home_, *told, error);
        home_.cluster().watch().check_back_off(home_, *told, took);
        home_.cluster().watch().check_wait(
            home_, wait, home_.cluster().node_timeout_of(ttl), took, home_.pauses() > pauses);
        on_won(std::make_shared<lease_interval>(lease_interval{std::move(won), 0, ttl}));
    };
    home_.locks().async_acquire(
        home_.cluster().resource_name(resource), {.ttl = ttl, .wait = wait}, *told,
        cancellable(under_way_, std::move(done)));
}

void worker::keep(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::acquire_kept, resource);
    const std::optional<std::chrono::milliseconds> most =
        draws_.one_in(4) ? std::optional{1ms + std::chrono::milliseconds{draws_.below(100)}} : std::nullopt;
    auto done = [this, self = under_way_, ttl, most](error_code error, redlock::lease won)
    {
        home_.end(self, error);
        on_won(std::make_shared<lease_interval>(lease_interval{std::move(won), 0, ttl, true, false, most}));
    };
    keep_options with{
        .ttl = ttl,
        .max_hold = most ? time_limit{*most} : time_limit{no_limit},
        .wait = std::chrono::milliseconds{draws_.below(100)}};
    home_.locks().async_acquire_kept(
        home_.cluster().resource_name(resource), with, cancellable(under_way_, std::move(done)));
}

void worker::on_won(const lease_interval_ptr& won)
{
    if (!won->lease)
    {
        later();
        return;
    }
    has_ = won;
    const auto margin = won->kept ? std::optional{home_.cluster().margin_of(won->ttl)} : std::nullopt;
    const auto hold_ends = won->max_hold ? std::optional{home_.now() + *won->max_hold} : std::nullopt;
    won->known_as = home_.cluster().watch().won(home_, won->lease, margin, won->kept, hold_ends);
    if (won->kept)
    {
        const call_ptr waiting = home_.begin(action::wait_lost);
        auto lost = [this, waiting, won](error_code error, error_code why)
        {
            home_.end(waiting, error ? error : why);
            if (!error)
            {
                home_.cluster().watch().lost_for_good(won->known_as);
            }
            on_lost(won);
        };
        won->lease.async_wait_lost(cancellable(waiting, std::move(lost)));
    }
    if (stopping_)
    {
        give_back();
        return;
    }
    looks_ = 1 + draws_.below(3);
    hold_on();
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
    const auto told = std::make_shared<report>();
    auto done = [this, self = under_way_, mine = has_, told,
                 owner_id = std::string{has_->lease.owner_id()}](error_code error)
    {
        home_.end(self, error);
        home_.read(*told);
        if (error == errc::no_quorum || error == errc::validity_exhausted)
        {
            home_.expect_event(expected_event::failed_extension, owner_id);
        }
        if (has_ == mine && !mine->ending)
        {
            hold_on();
        }
    };
    has_->lease.async_extend(has_->ttl, *told, cancellable(under_way_, std::move(done)));
}

void worker::on_lost(const lease_interval_ptr& lost)
{
    home_.cluster().watch().told_of_loss(lost->known_as);
    // The body uses some of the time that it has to stop.
    home_.after(
        draws_.one_in(2) ? draws_.between(0us, home_.cluster().margin_of(lost->ttl)) : 0us,
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
    const auto told = std::make_shared<report>();
    home_.expect_event(expected_event::release, owner_id);
    auto released = [this, releasing, mine, owner_id, resource, told](error_code error)
    {
        home_.end(releasing, error);
        home_.read(*told);
        home_.cluster().watch().check_release(home_, mine->lease, owner_id, resource, error);
        done();
    };
    mine->lease.async_release(*told, cancellable(releasing, std::move(released)));
}

void worker::done()
{
    has_.reset();
    later();
}

void worker::run_body(std::size_t resource, std::chrono::milliseconds ttl)
{
    under_way_ = home_.begin(action::with_lock, resource);
    const std::chrono::milliseconds margin = home_.cluster().margin_of(ttl);
    auto done = [this, self = under_way_](std::exception_ptr thrown)
    {
        home_.end(self, code_of(thrown));
        later();
    };
    auto body = [this, margin](redlock::lease& held) { return work(held, margin); };
    keep_options with{.ttl = ttl, .max_hold = no_limit, .wait = std::chrono::milliseconds{draws_.below(100)}};
    auto called = cancellable(under_way_, std::move(done));
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

asio::awaitable<void> worker::work(redlock::lease& held, std::chrono::milliseconds margin)
{
    oracle& watch = home_.cluster().watch();
    watch.check(held.valid(), "late start", home_.name() + " begins a body under a lease that has lapsed");
    const bool deaf = draws_.one_in(8);
    const std::optional<std::chrono::milliseconds> told_before = deaf ? std::nullopt : std::optional{margin};
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
        // Otherwise no further wait would be possible.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        // The body uses some of the time that it has to stop, or occasionally more than that.
        const clock::duration stops_in = draws_.between(0us, draws_.one_in(4) ? 3 * margin : margin);
        co_await home_.async_wait(stops_in, token);
    }
    watch.gave_back(known_as);
    if (cancelled)
    {
        throw system_error{asio::error::operation_aborted};
    }
}

} // namespace redlock::test
