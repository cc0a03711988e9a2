// SPDX-License-Identifier: BSL-1.0
// The implementation of a lock_manager: construction, shutdown, and the events of its connections.
#include "manager/lock_service.hpp"

#include "manager/operations/operations.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace redlock::manager
{

namespace
{

constexpr std::size_t max_unused_rounds = 4096;

} // namespace

active_operation::active_operation(lock_service& service, std::uint64_t id, shutdown_policy policy)
    : wake_event{service.strand()}, service_{service}, id_{id}, policy_{policy}
{
    if (service.aborted_) [[unlikely]]
    {
        // A call that found the manager just before its destruction begins after it.
        stopped_ = asio::error::operation_aborted;
    }
    service_.active_.insert(service_.active_.end(), *this); // The hint: its id is usually the largest.
    ++service_.active_count_;
    service_.strand_.expect_more(service_.active_count_ > 1);
}

active_operation::~active_operation()
{
    unlink();
    --service_.active_count_;
    service_.strand_.expect_more(service_.active_count_ > 1);
    service_.notify_shutdown();
}

void active_operation::stop(error_code why) noexcept
{
    if (!stopped_)
    {
        stopped_ = why;
        wake_event.notify();
    }
}

lock_service::lock_service(
    std::shared_ptr<manager_handle> handle, asio::any_io_executor executor, config options,
    std::shared_ptr<const runtime::environment> outside)
    : handle_{std::move(handle)},
      options_{std::move(options)},
      redactor_{options_.masters},
      outside_{std::move(outside)},
      connection_options_{
          options_.connect_timeout,
          {options_.reconnect_delay_min, options_.reconnect_delay_max},
          options_.probe_interval,
          options_.response_timeout,
          options_.max_outstanding_keys,
          options_.max_write_queue_bytes,
          options_.client_name,
          options_.drift_factor,
          {},
          options_.key_prefix},
      strand_{executor},
      connection_numbers_(options_.masters.size()),
      tried_(options_.masters.size()),
      queues_{options_.max_waiting_acquires},
      reserved_{options_.key_prefix},
      run_ids_{options_.masters.size()}
{
    auto names = std::make_shared<detail::master_names>();
    for (const master& each : options_.masters)
    {
        names->push_back(each.name());
    }
    names_ = std::move(names);
    if (options_.observer.on_event)
    {
        if (!options_.observer.executor)
        {
            options_.observer.executor = std::move(executor);
        }
        notifier_ = std::make_shared<notifier>(options_.observer);
    }
    outages_.resize(options_.masters.size());
    if (options_.guarded)
    {
        connection_options_.guarded = true;
        connection_options_.probe_interval = std::min(options_.probe_interval, guard::longest_interval);
        guard_ = std::make_unique<guard>(*this, options_.guarded->group);
    }
}

lock_service::~lock_service()
{
    shutdown_event_ = nullptr;
    // The lease state of a lease may outlive this object, but its keeper must not.
    leases_.clear_and_dispose(
        [](lease_state* held)
        {
            held->kept.reset();
            held->expiry.reset();
            intrusive_ptr_release(held);
        });
    // First of all, because suspended coroutines refer to the members.
    strand_.destroy_detached_tasks();
}

void lock_service::open()
{
    strand_.start(*outside_, weak_from_this());
    queues_.open(*outside_, options_.masters.size());
    connection_options_.channel = net::queue_channel(queues_.manager_id());
    net::connection_owner& owner = *this;
    for (std::size_t index = 0; index < options_.masters.size(); ++index)
    {
        connections_.push_back(std::make_unique<net::connection>(
            strand_, *outside_, connection_options_, options_.masters[index], index, owner));
    }
    auto connect = [this]
    {
        for (const auto& each : connections_)
        {
            each->start();
        }
    };
    strand_.post(connect);
}

std::chrono::milliseconds lock_service::node_timeout(std::chrono::milliseconds ttl) const noexcept
{
    return core::node_timeout(ttl, options_.node_timeout);
}

core::timing
lock_service::timing(std::chrono::milliseconds ttl, std::chrono::milliseconds min_validity) const noexcept
{
    return {ttl, min_validity, options_.node_timeout, options_.drift_factor};
}

core::lease_schedule lock_service::schedule(
    std::chrono::milliseconds ttl, std::optional<std::chrono::milliseconds> extend_every,
    std::optional<std::chrono::milliseconds> stop_margin) const noexcept
{
    return core::make_schedule(ttl, extend_every, stop_margin, node_timeout(ttl), options_.drift_factor);
}

std::uint64_t lock_service::random_number() const noexcept
{
    std::uint64_t number = 0;
    outside_->random(std::as_writable_bytes(std::span{&number, 1}));
    return number;
}

void lock_service::cancel(std::uint64_t operation) noexcept
{
    const auto found = active_.find(operation, active_operation::by_id{});
    if (found != active_.end())
    {
        found->stop(asio::error::operation_aborted);
    }
}

void lock_service::stop_all(error_code why) noexcept
{
    for (active_operation& each : active_)
    {
        each.stop(why);
    }
}

void lock_service::stop_for_shutdown(error_code why) noexcept
{
    for (active_operation& each : active_)
    {
        if (each.policy_ == shutdown_policy::stop)
        {
            each.stop(why);
        }
    }
}

void lock_service::wake_all() noexcept
{
    for (active_operation& each : active_)
    {
        each.wake_event.notify();
    }
}

void lock_service::notify_shutdown() noexcept
{
    if (shutdown_event_ != nullptr)
    {
        shutdown_event_->notify();
    }
}

void lock_service::abort()
{
    closing_ = true;
    aborted_ = true;
    stop_all(asio::error::operation_aborted);
    for (lease_state& each : leases_)
    {
        each.expiry.reset();
        if (each.kept)
        {
            each.kept->stop();
        }
    }
    close_connections();
}

void lock_service::close_connections()
{
    // The success of these releases may have been reported.
    while (!held_back_.empty())
    {
        held_back_.front().of.send_held_back();
    }
    for (const auto& each : connections_)
    {
        each->stop();
    }
}

std::size_t lock_service::outstanding() const noexcept
{
    std::size_t count = 0;
    for (const auto& each : connections_)
    {
        count += each->ready() ? each->outstanding().count() : 0;
    }
    return count;
}

void lock_service::release_in_background(lease_state& lease)
{
    release(*this, release_call{detail::lease_state_ptr{&lease}, nullptr, {}, handle_->next_operation()});
}

void lock_service::recycle(round& unused) noexcept
{
    std::unique_ptr<round> owned{&unused};
    if (unused_rounds_.size() < max_unused_rounds)
    {
        unused_rounds_.push_back(std::move(owned));
    }
}

void lock_service::notify(event what)
{
    notifier_->push(std::move(what));
}

void lock_service::keep_votes(lease_state& held, const round& failed, error_code result) noexcept
{
    held.failed.reset();
    try
    {
        held.failed = std::make_unique<detail::failed_extension>(detail::failed_extension{
            result, strand_.now() - failed.started(), failed.node_timeout(), failed.votes(), names_});
    }
    catch (const std::bad_alloc&)
    {
        return; // The loss is told without them.
    }
}

void lock_service::notify_round(
    const round& of, error_code result, std::uint32_t number, clock::duration validity)
{
    const lease_state& lease = of.lease();
    round_decided what{std::string{lease.resource()}, {}, std::string{lease.owner_id()}};
    what.report.result = result;
    what.report.rounds = number;
    what.report.elapsed = strand_.now() - of.started();
    what.report.validity = validity;
    of.describe(what.report);
    const bool released = what.report.operation == operation::release;
    notify(std::move(what));
    if (released)
    {
        notify(lease_released{std::string{lease.resource()}, std::string{lease.owner_id()}, result});
    }
}

clock::time_point lock_service::first_round_at(std::chrono::milliseconds patience) const noexcept
{
    if (!connecting_)
    {
        return clock::time_point::min();
    }
    if (warm_since_)
    {
        return core::later(*warm_since_, patience);
    }
    std::size_t possible = 0;
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        possible += is_ready(master) || !tried_[master] ? 1U : 0U;
    }
    return possible >= quorum_of(connections_.size()) ? clock::time_point::max() : clock::time_point::min();
}

std::vector<master_examination> lock_service::describe_masters() const
{
    std::vector<master_examination> found;
    const std::vector<guarded_advice> advice = guard_ ? guard_->advise() : std::vector<guarded_advice>{};
    for (std::size_t index = 0; index < connections_.size(); ++index)
    {
        const net::connection& one = *connections_[index];
        master_examination& entry = found.emplace_back();
        entry.name = names_->at(index);
        if (!one.ready())
        {
            entry.reason = one.last_failure().reason;
            entry.detail = redactor_.show(one.last_failure().detail).view();
            continue;
        }
        if (one.server().has_run_id)
        {
            entry.server = redactor_.show(one.server().server + ' ' + one.server().version).view();
            entry.run_id = redactor_.show(one.run_id()).view();
        }
        if (guard_)
        {
            entry.guarded = guard_->describe(index);
            entry.guarded->advice = advice[index];
        }
        for (const master_issue& each : one.risks())
        {
            entry.risks.push_back({each.what, std::string{redactor_.show(each.detail).view()}});
        }
    }
    return found;
}

bool lock_service::claim_run_id(std::size_t master, std::string_view run_id)
{
    return run_ids_.claim(master, run_id);
}

void lock_service::on_up(std::size_t master, std::string_view run_id)
{
    outages_[master].clear();
    ++connection_numbers_[master];
    queues_.identify(master, run_id.empty() ? std::string_view{names_->at(master)} : run_id);
    queue_masters_[master] = false; // It is another server, or has another queue.
    reconsider_queue_masters();
    if (observed())
    {
        notify(master_up{master, names_->at(master), std::string{redactor_.show(run_id).view()}});
    }
    if (guard_)
    {
        guard_->on_up(master);
    }
    note_ready();
}

/// Returns whether a master can be asked for its vote. In guarded mode, after the first look at it.
bool lock_service::is_ready(std::size_t master) const noexcept
{
    return connections_[master]->ready() && (!guard_ || guard_->has_looked(master));
}

void lock_service::note_ready() noexcept
{
    std::size_t ready = 0;
    for (std::size_t master = 0; master < connections_.size(); ++master)
    {
        ready += is_ready(master) ? 1U : 0U;
        tried_[master] = tried_[master] || is_ready(master);
    }
    if (!warm_since_ && ready >= quorum_of(connections_.size()))
    {
        warm_since_ = strand_.now();
    }
    wake_first_operations();
}

void lock_service::on_looked()
{
    reconsider_queue_masters();
    note_ready();
}

void lock_service::on_down(std::size_t master, const net::failure& why)
{
    std::vector<error_code>& reported = outages_[master];
    const bool is_reported = std::find(reported.begin(), reported.end(), why.reason) != reported.end();
    // The manager's own end is no outage.
    if (observed() && !is_reported && why.reason != asio::error::operation_aborted)
    {
        reported.push_back(why.reason);
        const short_text shown = redactor_.show(why.detail);
        notify(master_down{master, names_->at(master), why.reason, std::string{shown.view()}});
    }
    tried_[master] = true;
    if (guard_)
    {
        guard_->on_down(master);
    }
    reconsider_queue_masters(); // Not after each connect that fails.
    notify_shutdown();
    wake_first_operations();
}

void lock_service::on_risk(std::size_t master, risk what, std::string detail)
{
    if (what == risk::release_refused || what == risk::limited_queue)
    {
        reconsider_queue_masters(); // Records the change, so that its end is noticed.
        queues_.reconsider_all();   // It may be their queue master no longer.
    }
    if (observed())
    {
        const short_text shown = redactor_.show(detail);
        notify(master_warning{master, names_->at(master), what, std::string{shown.view()}});
    }
}

void lock_service::on_clock_off(std::size_t master, const core::clock_deviation& off)
{
    if (guard_ && off.by > clock::duration::zero())
    {
        guard_->on_clock_ahead(master, off);
    }
}

/// Wakes the operations that wait for the first connections, if their wait may be over.
void lock_service::wake_first_operations() noexcept
{
    if (std::exchange(connecting_, std::find(tried_.begin(), tried_.end(), false) != tried_.end()))
    {
        wake_all();
    }
}

void lock_service::on_nothing_outstanding()
{
    notify_shutdown();
}

void lock_service::on_stopped(std::size_t)
{
    ++stopped_connections_;
    if (connections_stopped())
    {
        strand_.close();
    }
    notify_shutdown();
}

} // namespace redlock::manager
