// SPDX-License-Identifier: BSL-1.0
// One client process.
#include "process.hpp"

#include "cluster_run.hpp"

#include "api/create.hpp"
#include "manager/access.hpp"
#include "net/subscription.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

const std::string mistyped_host = "stranger.test";

} // namespace

process::process(cluster_run& cluster, int number, std::uint64_t seed)
    : cluster_{cluster},
      number_{number},
      name_{"client " + std::to_string(number)},
      draws_{seed},
      environment_{std::make_shared<virtual_environment>(cluster.shared_world(), number)},
      callers_{std::in_place, BOOST_ASIO_CONCURRENCY_HINT_UNSAFE},
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

bool process::guarded() const noexcept
{
    const std::optional<guarded_plan>& group = cluster_.drawn().guarded;
    return group && !operates_ && !(group->plain_client && number_ == 1);
}

void process::make_manager()
{
    ended_ = false;
    config options = cluster_.options();
    const plan& drawn = cluster_.drawn();
    if (guarded())
    {
        options.guarded.emplace();
    }
    if (mistyped_)
    {
        options.masters[*mistyped_] = "redis://" + mistyped_host;
    }
    // Processes that are added later check the others, and need more than one operation.
    if (static_cast<std::size_t>(number_) <= drawn.clients)
    {
        options.max_outstanding_keys = drawn.max_outstanding_keys.value_or(options.max_outstanding_keys);
        options.max_operations = drawn.max_operations.value_or(options.max_operations);
        options.max_waiting_acquires = drawn.max_waiting_acquires.value_or(options.max_waiting_acquires);
        options.observer.max_waiting = drawn.max_waiting_events;
    }
    if (cluster_.drawn().observed)
    {
        if (cluster_.drawn().other_executors)
        {
            options.observer.executor = other_executor();
        }
        options.observer.on_event = [this, number = ++managers_](const event& what)
        { on_event(number, what); };
    }
    auto handle = api::create(io_->get_executor(), std::move(options), environment_);
    handle_ = handle;
    locks_.emplace(detail::access::make_manager(std::move(handle)));
}

void process::on_event(int manager, const event& what)
{
    cluster_.watch().count_event();
    cluster_.watch().check(
        on_other_executor() == cluster_.drawn().other_executors, "executor",
        "{} is notified of an event on the wrong executor", name_);
    // Of a pause it isn't known whether it was before the event or after it.
    const auto at = last_pause_ < now() ? std::optional{now()} : std::nullopt;
    const auto contradiction = events_.notified(manager, what, at);
    cluster_.watch().check(!contradiction, "events", "{}: {}", name_, contradiction.value_or(""));
    check_keeping(what);
    cluster_.watch().check_reported(cluster_.watch().reports().told(number_, what));
    if (const auto* decided = std::get_if<round_decided>(&what))
    {
        oracle& watch = cluster_.watch();
        watch.check_reported(watch.reports().decided(number_, *decided));
        watch.check_sent(*this, *decided);
    }
    if (const auto* down = std::get_if<master_down>(&what))
    {
        cluster_.watch().check_silence(*this, *down);
    }
    if (const auto* warned = std::get_if<master_warning>(&what);
        warned != nullptr && warned->what == risk::clock)
    {
        cluster_.watch().check(
            cluster_.drawn().breaks_assumptions || cluster_.clock_was_set(warned->index) ||
                cluster_.masters()[warned->index]->habits.contains("TIME") ||
                cluster_.watch().reports().misdirected(number_),
            "events", "{} is notified of the clock of master {}: {}", name_, warned->index, warned->detail);
        if (cluster_.group() && warned->detail.starts_with("it went ahead"))
        {
            cluster_.watch().jumps().noticed(
                {number_, manager}, warned->index, cluster_.world().now(),
                cluster_.group()->nonce(warned->index));
        }
    }
    if (const auto* warned = std::get_if<master_warning>(&what);
        warned != nullptr && warned->what == risk::eviction)
    {
        cluster_.watch().check(
            cluster_.could_evict(warned->index) || cluster_.watch().reports().misdirected(number_), "events",
            "{} is notified that master {} may evict keys", name_, warned->index);
    }
    if (const auto* warned = std::get_if<master_warning>(&what);
        warned != nullptr && warned->what == risk::limited_queue &&
        warned->detail == net::subscription::complaint)
    {
        const auto& refuses = cluster_.masters()[warned->index]->habits;
        cluster_.watch().check(
            refuses.contains("SUBSCRIBE") || refuses.contains("PUBLISH") || refuses.contains("may greet?") ||
                cluster_.watch().reports().misdirected(number_),
            "events", "{} is notified that master {} refuses subscriptions", name_, warned->index);
    }
    if (observer_client_)
    {
        observer_client_->on_event(what);
    }
}

/// Where events may be dropped, an extension may be missing.
void process::check_keeping(const event& what)
{
    const auto broken = keeping_.notified(what, now(), last_pause_);
    cluster_.watch().check(
        !broken || cluster_.drawn().max_waiting_events < observer{}.max_waiting, "kept", "{}: {}", name_,
        broken ? broken->words : "");
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
    const bool can_choose = cluster_.drawn().other_executors && busy_until_ <= cluster_.world().now();
    const bool other_first = can_choose && picks.one_in(2);
    const bool ran =
        (other_first && run_one(*callers_)) || run_one(*io_) || (can_choose && run_one(*callers_));
    if (!ran)
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

/// Runs one handler. Returns false if none was ready.
bool process::run_one(asio::io_context& in)
{
    in.restart();
    try
    {
        return in.poll_one() > 0;
    }
    catch (const handler_failure&)
    {
        return true; // As in a program that catches it and calls run() again.
    }
}

void process::keep_busy(clock::duration length)
{
    busy_until_ = cluster_.world().now() + length;
    note_pause();
    cluster_.world().at(
        busy_until_, event_kind::timer,
        [weak = weak_from_this()]
        {
            if (const auto self = weak.lock())
            {
                self->note_pause();
            }
        });
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
    callers_.reset();
}

void process::shut_down(bool then_anew)
{
    if (closing_)
    {
        return;
    }
    closing_ = true;
    ++endings_;
    const call_ptr ending = begin(action::shutdown);
    auto done = [this, ending, then_anew, began = cluster_.world().now()](error_code error)
    {
        end(ending, error);
        shutdown_took_ = cluster_.world().now() - began;
        shutdown_error_ = error;
        closing_ = false;
        ended_ = true;
        was_shut_down_ = !then_anew && !error;
        if (!error)
        {
            cluster_.watch().check_shut_down(*this);
        }
        if (then_anew && !stopping_)
        {
            make_manager();
        }
    };
    orderly_ = orderly_ && !then_anew;
    cluster_.watch().closing(*this);
    locks_->async_shutdown(asio::bind_cancellation_slot(ending->cancel.slot(), std::move(done)));
    for (const auto& each : workers_)
    {
        each->on_shutdown();
    }
}

void process::drop_manager()
{
    say(action::manager_dropped);
    ++endings_;
    orderly_ = false;
    keeping_ = {}; // It extends nothing any more.
    cluster_.watch().closing(*this);
    make_manager();
}

void process::mistype(std::size_t master, sim_master* server)
{
    mistyped_ = server != nullptr ? std::optional{master} : std::nullopt;
    if (server != nullptr)
    {
        environment_->put(mistyped_host, *server);
    }
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

void process::after(clock::duration length, std::function<void()> what)
{
    when_up(length, [this, what = std::move(what)] { asio::post(*io_, what); });
}

/// Calls `what` after `length` of true time, outside of the executor, if the process is up then.
void process::when_up(clock::duration length, std::function<void()> what)
{
    auto due = [weak = weak_from_this(), what = std::move(what)]
    {
        if (const auto self = weak.lock(); self && self->up())
        {
            what();
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
        slot.assign([handlers = handlers_, waiting = ticket](asio::cancellation_type) mutable
                    { handlers->complete(waiting, asio::error::operation_aborted); });
    }
    when_up(length, [this, waiting = ticket]() mutable { handlers_->complete(waiting, {}); });
}

void process::end_manager()
{
    // An examination may be under way.
    cluster_.watch().closing(*this);
    locks_.reset();
    workers_.clear();
}

std::string process::leftovers()
{
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
    return cluster_.drawn().observed && orderly_ && !cluster_.watch().reports().misdirected(number_)
               ? events_.missing()
               : std::string{};
}

void process::say(action what, action_phase phase, error_code error, std::optional<std::size_t> resource)
{
    trace& told = cluster_.told();
    told.add(
        {static_cast<std::uint64_t>(number_), static_cast<std::uint64_t>(what),
         static_cast<std::uint64_t>(phase), resource ? *resource + 1 : 0});
    told.add_error(error);
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
