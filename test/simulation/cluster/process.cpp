// SPDX-License-Identifier: BSL-1.0
// One client process.
#include "process.hpp"

#include "cluster_run.hpp"
#include "wire_trace.hpp"

#include "api/create.hpp"
#include "manager/access.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace redlock::test
{

namespace asio = boost::asio;

process::process(cluster_run& cluster, int number, std::uint64_t seed)
    : cluster_{cluster},
      number_{number},
      name_{"client " + std::to_string(number)},
      draws_{seed},
      environment_{std::make_shared<virtual_environment>(cluster.shared_world(), number)},
      io_{std::in_place, BOOST_ASIO_CONCURRENCY_HINT_UNSAFE},
      handlers_{&asio::use_service<pending_handlers>(*io_)}
{
    if (cluster.drawn().looked_on)
    {
        observer_client_.emplace(*this, draws_.fork());
    }
    handlers_->hold_back();
    for (std::size_t index = 0; index < cluster.masters().size(); ++index)
    {
        environment_->put(host_of(index), *cluster.masters()[index]);
    }
}

process::~process()
{
    kill(false);
}

void process::start()
{
    make_manager();
    for (std::size_t index = 0; index < cluster_.drawn().workers; ++index)
    {
        workers_.push_back(std::make_unique<worker>(*this, draws_.fork()));
        workers_.back()->start();
    }
    if (observer_client_)
    {
        observer_client_->start();
    }
}

void process::make_manager()
{
    config options = cluster_.options();
    if (observer_client_)
    {
        options.observer.on_event = [this](const event& what) { observer_client_->on_event(what); };
    }
    locks_.emplace(
        detail::access::make_manager(api::create(io_->get_executor(), std::move(options), environment_)));
}

bool process::step(chance& picks)
{
    if (!up() || paused_)
    {
        return false;
    }
    // I/O completions run in any order; posted functions run in theirs.
    if (const std::size_t ready = handlers_->ready(); ready > 0)
    {
        handlers_->post_ready(picks.below(ready));
    }
    io_->restart();
    if (io_->poll_one() == 0)
    {
        return false;
    }
    count_down();
    if (steps_to_pause_ && (*steps_to_pause_)-- == 0)
    {
        steps_to_pause_.reset();
        pause();
    }
    return true;
}

void process::kill(bool resets)
{
    if (!up())
    {
        return;
    }
    say(resets ? action::killed_and_reset : action::killed);
    if (resets)
    {
        for (const auto& each : cluster_.links_of(number_))
        {
            each->cut();
        }
    }
    cluster_.watch().forget(*this);
    orderly_ = false;
    // Leases and managers that outlive their context do nothing.
    io_.reset();
    workers_.clear();
    locks_.reset();
}

void process::shut_down(bool then_anew)
{
    if (closing_)
    {
        return;
    }
    closing_ = true;
    const call_ptr ending = begin(action::shutdown);
    auto done = [this, ending, then_anew](error_code error)
    {
        end(ending, error);
        closing_ = false;
        was_shut_down_ = !then_anew && !error;
        if (then_anew && !stopping_)
        {
            make_manager();
        }
    };
    orderly_ = orderly_ && !then_anew;
    cluster_.watch().closing(*this);
    locks_->async_shutdown(asio::bind_cancellation_slot(ending->cancel.slot(), std::move(done)));
}

void process::drop_manager()
{
    say(action::manager_dropped);
    orderly_ = false;
    cluster_.watch().closing(*this);
    make_manager();
}

void process::cancel_one(std::size_t which)
{
    std::erase_if(calls_, [](const std::weak_ptr<call>& each) { return each.expired(); });
    if (calls_.empty())
    {
        return;
    }
    if (const call_ptr one = calls_[which % calls_.size()].lock(); one && !one->done)
    {
        cancel(one);
    }
}

/// Emits from outside of the executor, as a signal handler or a timer might.
void process::cancel(const call_ptr& what)
{
    what->cancelled = true;
    what->cancel.emit(asio::cancellation_type::terminal);
}

void process::stop()
{
    stopping_ = true;
    at_grant_ = {};
    for (const auto& each : workers_)
    {
        each->stop();
    }
    if (observer_client_)
    {
        observer_client_->stop();
    }
}

void process::post(std::function<void()> what)
{
    asio::post(*io_, std::move(what));
}

void process::after(clock::duration length, std::function<void()> what)
{
    auto due = [weak = weak_from_this(), what = std::move(what)]
    {
        if (const auto self = weak.lock(); self && self->up())
        {
            self->post(what);
        }
    };
    cluster_.world().at(cluster_.world().now() + length, event_kind::timer, std::move(due));
}

call_ptr process::begin(action what, std::optional<std::size_t> resource)
{
    auto one = std::make_shared<call>(what);
    ++running_;
    calls_.push_back(one);
    say(what, action_phase::begun, {}, resource);
    if (draws_.one_in(cluster_.drawn().does.cancels_one_in))
    {
        to_cancel_.push_back({draws_.below(40), one});
    }
    return one;
}

void process::end(const call_ptr& done, error_code error)
{
    cluster_.watch().check(!done->done, "completed once", "an operation completed twice");
    done->done = true;
    --running_;
    say(done->what, action_phase::ended, error, {});
    if (observer_client_ && error)
    {
        observer_client_->read(error.message());
    }
    cluster_.watch().completed(*this, *done, error);
}

/// An operation is cancelled after a number of steps: at any of its suspensions.
void process::count_down()
{
    for (std::size_t at = 0; at < to_cancel_.size();)
    {
        countdown& each = to_cancel_[at];
        if (each.steps-- > 0)
        {
            ++at;
            continue;
        }
        const call_ptr one = each.of.lock();
        to_cancel_.erase(to_cancel_.begin() + static_cast<std::ptrdiff_t>(at));
        if (one && !one->done)
        {
            cancel(one);
        }
    }
}

void process::wait(clock::duration length, waiting_handler handler)
{
    auto slot = asio::get_associated_cancellation_slot(handler);
    const pending_handlers::ticket ticket = handlers_->add(io_->get_executor(), std::move(handler));
    if (slot.is_connected())
    {
        slot.assign(
            [handlers = handlers_, ticket](asio::cancellation_type)
            {
                pending_handlers::ticket waiting = ticket;
                handlers->complete(waiting, asio::error::operation_aborted);
            });
    }
    auto due = [weak = weak_from_this(), ticket]
    {
        if (const auto self = weak.lock(); self && self->up())
        {
            pending_handlers::ticket waiting = ticket;
            self->handlers_->complete(waiting, {});
        }
    };
    cluster_.world().at(cluster_.world().now() + length, event_kind::timer, std::move(due));
}

std::string process::leftovers()
{
    // An examination may be under way.
    cluster_.watch().closing(*this);
    locks_.reset();
    workers_.clear();
    while (step(draws_))
    {
    }
    if (running_ > 0)
    {
        return std::to_string(running_) + " operations never completed";
    }
    if (!handlers_->empty())
    {
        return "handlers wait for something that doesn't come";
    }
    if (environment_->alarms() > 0)
    {
        return "an alarm is left";
    }
    if (environment_->streams() > 0)
    {
        return "a stream is left";
    }
    if (environment_.use_count() > 1)
    {
        return "a manager is left, or a lease";
    }
    return observer_client_ && orderly_ ? observer_client_->missing() : std::string{};
}

void process::say(action what, action_phase phase, error_code error, std::optional<std::size_t> resource)
{
    trace& told = cluster_.told();
    told.add(
        {static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(what),
         static_cast<std::uint64_t>(phase), resource ? *resource + 1 : 0});
    add_error(told, error);
    if (told.printing())
    {
        const std::string about = resource ? " resource " + std::to_string(*resource) : std::string{};
        const std::string why = error ? ": " + error.message() : std::string{};
        told.print(
            cluster_.world().now(), name_, now(),
            fmt::format(
                "{}{}{}{}", name_of(what), about, phase == action_phase::ended ? " has ended" : "", why));
    }
}

} // namespace redlock::test
