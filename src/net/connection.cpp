// SPDX-License-Identifier: BSL-1.0
// The connection to one master: its states, reading, writing, and its deadlines.
#include "net/connection.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace redlock::net
{

namespace
{

/// Returns how many commands that concern no outstanding key may be in flight. No limit of keys is too large for it.
std::size_t max_optional(const connection_options& options)
{
    constexpr std::size_t for_each_key = 2; // A SET and an extension.
    constexpr std::size_t of_its_own = 4;   // A probe, and a trial of the queue's commands.
    constexpr std::size_t if_guarded = 8;   // A look, and the commands of quarantine and arming.
    constexpr std::size_t most_keys = std::numeric_limits<std::size_t>::max() / 4;
    return std::min(options.max_outstanding_keys, most_keys) * for_each_key + of_its_own +
           (options.guarded ? if_guarded : 0);
}

constexpr std::chrono::milliseconds second_look{1};

} // namespace

connection::connection(
    runtime::scheduler& strand, const runtime::environment& outside, const connection_options& options,
    const master& to, std::size_t index, connection_owner& owner)
    : strand_{strand},
      outside_{outside},
      options_{options},
      to_{to},
      index_{index},
      owner_{owner},
      clock_watch_{options.drift_factor},
      wake_event_{strand},
      outstanding_{index, options.max_outstanding_keys},
      commands_{index,
                outstanding_,
                max_optional(options),
                options.max_write_queue_bytes,
                options.reconnect,
                options.guarded}
{
}

void connection::start()
{
    run();
}

void connection::stop()
{
    stopping_ = true;
    if (ready())
    {
        state_ = state::draining;
        last_failure_ = {boost::asio::error::operation_aborted, {}};
        drained_by_ = strand_.now() + options_.response_timeout;
        watch(strand_.now());
    }
    strand_.at_step_end(*this); // Operations that end in this step queue their releases first.
}

void connection::on_step_end()
{
    if (stopping_) [[unlikely]]
    {
        wake_event_.notify();
    }
    if (state_ != state::connecting) // Until then the connect or the handshake uses the stream.
    {
        start_io();
    }
}

/// Returns whether releases are in flight or due, and have time left.
bool connection::is_draining() const noexcept
{
    const bool can_send = outstanding_.has_due() && commands_.backoff().not_before() < drained_by_;
    return state_ == state::draining && strand_.now() < drained_by_ &&
           (can_send || commands_.releases_in_flight());
}

runtime::detached_task connection::run()
{
    std::uint32_t failures = 0;
    while (!stopping_)
    {
        failure why = co_await connect();
        if (why.reason)
        {
            ++first_address_; // What answers there may not be the server.
        }
        else
        {
            const clock::time_point ready_at = strand_.now();
            become_ready();
            why = co_await serve();
            // Reset the back-off only if the connection lasted: a server that drops us at once would otherwise cause a
            // tight reconnect loop.
            if (strand_.now() - ready_at >= options_.reconnect.longest)
            {
                failures = 0;
            }
        }
        stream_->close();
        break_off(why);
        while (connecting_.pending || reading_.pending || writing_.pending)
        {
            co_await wake_event_;
        }
        stream_.reset();
        ++failures;
        const clock::time_point again =
            strand_.now() +
            core::backoff_delay(options_.reconnect, failures, clock::duration::zero(), random_number());
        strand_.arm(*this, again);
        while (!stopping_ && strand_.now() < again)
        {
            co_await wake_event_;
        }
    }
    disarm();
    state_ = state::stopped;
    owner_.on_stopped(index_);
}

std::uint64_t connection::random_number() const
{
    std::uint64_t number = 0;
    outside_.random(std::as_writable_bytes(std::span{&number, 1}));
    return number;
}

runtime::task<failure> connection::connect()
{
    state_ = state::connecting;
    overdue_ = unresponsive_ = false;
    misfit_ = {};
    subscription_ = {};
    pushes_ = {};
    reading_.error = writing_.error = {};
    reading_.bytes = 0;
    parser_.reset();
    stream_ = outside_.make_stream(strand_, to_);
    connect_time_.begin(options_.connect_timeout);
    const clock::time_point now = strand_.now();
    strand_.arm(*this, now + connect_time_.part());
    stream_->begin_with(first_address_);
    stream_->connect(connecting_, now + options_.connect_timeout);
    while (connecting_.pending)
    {
        const failure why = io_failure();
        if (why.reason)
        {
            co_return why;
        }
        co_await wake_event_;
    }
    failure why{connecting_.error, std::string{stream_->complaint()}};
    if (!why.reason)
    {
        why = co_await handshake();
    }
    co_return why;
}

runtime::task<failure> connection::serve()
{
    for (;;)
    {
        failure why = take_replies();
        if (!why.reason && is_disturbed())
        {
            why = io_failure();
        }
        if (why.reason)
        {
            co_return why;
        }
        start_io();
        co_await wake_event_;
    }
}

/// Starts a read unless one is in flight, and a write if there is output and none is in flight.
void connection::start_io()
{
    if (!stream_ || state_ > state::draining)
    {
        return;
    }
    while (!writing_.pending && !writing_.error)
    {
        commands_.written();
        if (outstanding_.has_due() && takes_releases())
        {
            commands_.push_due(strand_.now());
        }
        if (!commands_.has_output())
        {
            break;
        }
        std::span<const char> output = commands_.take_output(strand_.now());
        output = output.subspan(stream_->write_now(output));
        if (!output.empty())
        {
            stream_->write(output, writing_);
        }
    }
    if (!reading_.pending && !reading_.error)
    {
        stream_->read_some(parser_.prepare(), reading_);
    }
}

/// Returns the reason why the connection can't continue, if there is one.
failure connection::io_failure() const
{
    if (stopping_ && !is_draining())
    {
        return {boost::asio::error::operation_aborted, {}};
    }
    if (reading_.error)
    {
        const bool closed = reading_.error == boost::asio::error::eof;
        return {
            closed ? error_code{master_errc::connection_lost} : reading_.error,
            std::string{stream_->complaint()}};
    }
    // After a failed write, wait for the read: it may yield the reason, such as a TLS alert, or the error of a server
    // that refuses us. If nothing is received, a deadline ends the connection.
    if (writing_.error && !reading_.pending)
    {
        return {writing_.error, std::string{stream_->complaint()}};
    }
    if (unresponsive_)
    {
        return {master_errc::unresponsive, {}};
    }
    if (state_ == state::connecting && connect_time_.over())
    {
        return {master_errc::connect_timed_out, std::string{stream_->complaint()}};
    }
    return {};
}

failure connection::take_replies()
{
    if (reading_.pending)
    {
        return {};
    }
    if (const std::size_t bytes = std::exchange(reading_.bytes, 0); bytes > 0)
    {
        parser_.commit(bytes);
        last_read_ = strand_.now();
    }
    const bool had_outstanding = outstanding_.count() > 0;
    const bool probing = commands_.probing();
    while (const resp::reply* reply = parser_.next())
    {
        if (reply->is_push())
        {
            if (!accepts(*reply))
            {
                return {master_errc::protocol_error, std::string{push_guard::complaint}};
            }
            continue;
        }
        last_reply_ = last_read_;
        overdue_ = false;
        if (subscription_.is_pending() && commands_.probe_is_next())
        {
            if (!subscription_.on_reply(*reply))
            {
                return {master_errc::protocol_error, std::string{subscription::misfit}};
            }
            report_refused_subscription();
            continue;
        }
        if (const error_code reason = commands_.on_reply(*reply, last_read_))
        {
            return {reason, {}};
        }
    }
    if (probing && !commands_.probing())
    {
        check_clock();
        watch(last_read_); // Schedules the next probe.
    }
    if (commands_.backoff().refused() || commands_.has_refusal())
    {
        check_refusals();
    }
    if (had_outstanding && outstanding_.count() == 0)
    {
        owner_.on_nothing_outstanding();
    }
    if (parser_.error() != resp::parse_error::none)
    {
        return {master_errc::protocol_error, std::string{resp::describe(parser_.error())}};
    }
    return {};
}

/// Handles a push. Returns false if the server has sent too many unsolicited ones.
bool connection::accepts(const resp::reply& push)
{
    const std::optional<wake_up> message = read_wake_up(push, options_.channel);
    const bool expected = subscription_.on_push(push, options_.channel);
    if (!expected && (!message || !owner_.on_wake_up(index_, *message)))
    {
        pushes_.on_unsolicited();
    }
    return !pushes_.exceeded();
}

/// Handles refused releases and questions: after a temporary refusal, the next batch is put off; a permanent refusal is
/// reported.
void connection::check_refusals()
{
    if (commands_.backoff().refused())
    {
        const bool drains = state_ == state::draining;
        commands_.backoff().delay(
            last_read_, random_number(), drains ? drained_by_ : clock::time_point::max());
        watch(last_read_);
    }
    report_refusals();
}

void connection::report_refusals()
{
    if (std::string words = commands_.take_refusal(); !words.empty())
    {
        owner_.on_risk(index_, risk::release_refused, std::move(words));
    }
    if (std::string words = commands_.take_queue_refusal(); !words.empty())
    {
        owner_.on_risk(index_, risk::limited_queue, std::move(words));
    }
}

/// Reports the end of a request of the subscription that was put off.
void connection::report_refused_subscription()
{
    if (subscription_.is_refused() && !subscription_.is_pending() && commands_.forbidden_question().empty())
    {
        owner_.on_risk(index_, risk::limited_queue, subscription::complaint);
    }
}

void connection::check_clock()
{
    const std::optional<core::clock_reading> reading = commands_.take_clock_reading();
    if (commands_.hides_clock() && !std::exchange(clock_hidden_, true))
    {
        owner_.on_risk(index_, risk::clock, "it doesn't answer TIME");
    }
    const std::optional<core::clock_deviation> off = reading ? clock_watch_.add(*reading) : std::nullopt;
    if (off)
    {
        owner_.on_risk(index_, risk::clock, clock_complaint(off->by));
        owner_.on_clock_off(index_, *off);
    }
}

void connection::become_ready()
{
    const clock::time_point now = strand_.now();
    state_ = state::ready;
    last_read_ = last_probe_ = now;
    last_failure_ = {};
    clock_hidden_ = false;
    // After the stale connections were killed, and ahead of any new SET.
    commands_.push_due(now);
    // The first reading of the server's clock, with which later ones are compared.
    commands_.push_probe(now);
    watch(now);
    owner_.on_up(index_, run_id());
    for (master_issue& each : risks())
    {
        owner_.on_risk(index_, each.what, std::move(each.detail));
    }
}

void connection::break_off(const failure& why)
{
    // A reply that makes no sense may have come in addition, and the one to the last SET not yet.
    const bool misled = ready() && why.reason == master_errc::protocol_error;
    state_ = state::broken;
    last_failure_ = why; // A vote may cause another command, whose vote has this reason.
    disarm();
    report_refusals();
    if (commands_.break_off(why.reason, strand_.now()) || misled)
    {
        stale_connections_.mark_stale();
    }
    owner_.on_down(index_, why);
}

/// Returns the end of the response timeout. Each reply restarts it, because a server that works through a long queue
/// answers one command after the other. Meaningful only while a reply is owed.
clock::time_point connection::response_deadline() const noexcept
{
    return std::max(commands_.busy_since(), last_reply_) + options_.response_timeout;
}

/// Arms the deadline for the earliest of the response timeout, the next probe, and the releases that were put off; while draining,
/// of its end and these releases.
void connection::watch(clock::time_point now)
{
    clock::time_point next = drained_by_;
    if (ready())
    {
        next = commands_.awaits_reply() ? response_deadline() : now + options_.response_timeout;
    }
    if (ready() && !commands_.probing())
    {
        next = std::min(next, last_probe_ + options_.probe_interval);
    }
    if (outstanding_.has_due() && commands_.backoff().not_before() > now)
    {
        next = std::min(next, commands_.backoff().not_before());
    }
    strand_.arm(*this, next);
}

void connection::on_deadline()
{
    const clock::time_point now = strand_.now();
    if (state_ == state::connecting && connect_time_.next())
    {
        strand_.arm(*this, now + connect_time_.part());
        return;
    }
    if (!ready())
    {
        if (state_ == state::draining)
        {
            watch(now);
        }
        wake_event_.notify();
        return;
    }
    if (commands_.awaits_reply() && response_deadline() <= now)
    {
        // If this process was suspended, replies may be waiting in the kernel. Read once more before giving up.
        if (!std::exchange(overdue_, true))
        {
            strand_.arm(*this, now + second_look);
            return;
        }
        unresponsive_ = true;
        wake_event_.notify();
        return;
    }
    if (outstanding_.has_due())
    {
        strand_.at_step_end(*this);
    }
    if (now - last_probe_ >= options_.probe_interval && !commands_.probing())
    {
        last_probe_ = now;
        if (commands_.failed_trial())
        {
            commands_.push_trial(options_.key_prefix);
        }
        if (subscription_.is_put_off())
        {
            subscription_.request(commands_.text(), options_.channel);
        }
        commands_.push_probe(now);
        strand_.at_step_end(*this);
    }
    watch(now);
}

} // namespace redlock::net
