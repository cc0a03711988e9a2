// SPDX-License-Identifier: BSL-1.0
// A manager among hostile masters: what happens there, one thing after the other.
#include "hostile_scene.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

using namespace std::chrono_literals;

constexpr auto moment = 1ms; // What an operation may take beyond its bound.
constexpr auto max_node_timeout = 50ms;
constexpr auto longest_ttl = 10s;
constexpr std::array ttls{10'000ms, 100ms, 1000ms, 30ms};
constexpr std::array<std::chrono::milliseconds, 4> waits{0ms, 100ms, 1000ms, 20ms};
constexpr std::array<clock::duration, 8> lengths{100us, 1ms, 0ns, 10ms, 50ms, 200ms, 1s, 3s};
constexpr int max_patience = 10; // Of a shutdown, in response_timeout.

} // namespace

void hostile_scene::act()
{
    const std::size_t what = input_.below(24);
    if (what < 8)
    {
        act_on_manager(what);
    }
    else if (what < 14)
    {
        act_on_leases(what - 8);
    }
    else if (what < 20)
    {
        act_on_masters(what - 14);
    }
    else
    {
        run_for(input_.one_of(lengths));
    }
    look();
}

void hostile_scene::act_on_manager(std::size_t what)
{
    if (!locks_ || operations_.size() >= max_scene_operations)
    {
        run_for(1ms);
        return;
    }
    switch (what)
    {
    case 0:
    case 1:
    case 2:
        acquire(what);
        break;
    case 3:
        inspect();
        break;
    case 4:
        examine();
        break;
    case 5:
        jump(input_.one_of(lengths));
        break;
    case 6: // Some steps only: whatever comes next finds things half done.
        for (std::size_t left = input_.below(32); left > 0 && step(clock::time_point::max()); --left)
        {
        }
        break;
    default:
        // Rarely: little can happen after it.
        if (input_.below(8) == 7)
        {
            shut_down_ = true;
            shut_down();
        }
        else if (input_.below(32) == 31)
        {
            locks_.reset();
        }
    }
}

void hostile_scene::act_on_leases(std::size_t what)
{
    if (what == 0 && !operations_.empty())
    {
        begun& one = *operations_[input_.below(operations_.size())];
        one.cancel.emit(asio::cancellation_type::total);
        one.ends_at_latest = std::min<clock::time_point>(one.ends_at_latest, world_.now() + moment);
        return;
    }
    lease* const held = some_lease();
    if (held == nullptr || operations_.size() >= max_scene_operations)
    {
        return;
    }
    switch (what)
    {
    case 1:
    case 2:
        extend(*held);
        break;
    case 3:
        release(*held);
        break;
    case 4:
        wait_lost(*held);
        break;
    default: // It is destroyed.
        leases_.erase(leases_.begin() + (held - leases_.data()));
    }
}

void hostile_scene::act_on_masters(std::size_t what)
{
    fuzz_master& one = *masters_[input_.below(masters_.size())];
    const std::uint8_t how = input_.byte();
    switch (what)
    {
    case 0:
        one.is_hostile = !one.is_hostile;
        one.greets_well = (how & 1U) == 0;
        break;
    case 1: // Something unsolicited.
        if (how < 128)
        {
            one.send(input_.text(64));
        }
        else
        {
            one.send_pushes();
        }
        break;
    case 2:
        one.end((how & 1U) == 0 ? error_code{asio::error::eof} : asio::error::connection_reset);
        one.listens = (how & 6U) != 6;
        break;
    case 3:
        one.hangs = true;
        break;
    case 4:
        one.takes_bytes = false;
        one.piece = how % 16;
        break;
    default:
        one.go_on();
        one.listens = true;
        one.piece = how % 8;
        one.delay = {};
    }
}

begun_ptr hostile_scene::begin(std::string_view what, clock::duration at_most)
{
    auto started = std::make_shared<begun>();
    started->what = what;
    started->at = world_.now();
    started->ends_at_latest = world_.now() + at_most + moment;
    operations_.push_back(started);
    return started;
}

auto hostile_scene::status_into(const begun_ptr& to)
{
    auto done = [this, to](error_code result)
    {
        require(!std::exchange(to->done, true), "an operation ends twice");
        check_text(to->report.to_string());
        if (!result && to->what == "extend")
        {
            require(
                seen_.extended_since(to->owner_id, to->at) >= seen_.quorum(),
                "an extension is confirmed without a quorum");
        }
        if (!result && to->what == "release")
        {
            require(
                seen_.released(to->owner_id) >= seen_.quorum(), "a release is confirmed without a quorum");
        }
    };
    auto cancellable = asio::bind_cancellation_slot(to->cancel.slot(), std::move(done));
    // An empty lease would end on the system's executor, whose threads know nothing of our time.
    return asio::bind_executor(io_->get_executor(), std::move(cancellable));
}

auto hostile_scene::lease_into(const begun_ptr& to)
{
    auto done = [this, to](error_code result, lease won)
    {
        require(!std::exchange(to->done, true), "an operation ends twice");
        check_text(to->report.to_string());
        require(!result == static_cast<bool>(won), "a lease comes with an error, or none without");
        if (!won)
        {
            return;
        }
        check_lease(won);
        seen_.on_lease(won.owner_id());
        if (leases_.size() >= max_scene_leases)
        {
            leases_.erase(leases_.begin());
        }
        leases_.push_back(std::move(won));
    };
    return asio::bind_cancellation_slot(to->cancel.slot(), std::move(done));
}

std::string hostile_scene::some_resource()
{
    const std::size_t which = input_.below(8);
    // One with bytes that have a meaning on the wire, and one that is too long.
    return which == 6 ? "a\r\n$1\r\n" : which == 7 ? std::string(1025, 'x') : std::string(1, "abcabc"[which]);
}

lease* hostile_scene::some_lease()
{
    return leases_.empty() ? nullptr : &leases_[input_.below(leases_.size())];
}

void hostile_scene::acquire(std::size_t how)
{
    std::string resource = some_resource();
    const std::chrono::milliseconds ttl = input_.one_of(ttls);
    const std::chrono::milliseconds wait = input_.one_of(waits);
    const clock::duration at_most =
        std::max<clock::duration>(how == 1 ? 0ms : wait, until_warm()) + max_node_timeout;
    const begun_ptr what = begin("acquire", at_most);
    if (how == 0)
    {
        const acquire_options options{.ttl = ttl, .wait = wait};
        locks_->async_acquire(std::move(resource), options, what->report, lease_into(what));
    }
    else if (how == 1)
    {
        const try_options options{.ttl = ttl};
        locks_->async_try_acquire(std::move(resource), options, what->report, lease_into(what));
    }
    else
    {
        const keep_options options{.ttl = ttl, .max_hold = 3s, .wait = wait};
        locks_->async_acquire_kept(std::move(resource), options, what->report, lease_into(what));
    }
}

void hostile_scene::extend(lease& held)
{
    // They stand in line.
    const auto before = std::count_if(
        operations_.begin(), operations_.end(),
        [](const begun_ptr& each) { return !each->done && each->what == "extend"; });
    const begun_ptr what = begin("extend", (before + 1) * max_node_timeout);
    what->owner_id = held.owner_id();
    held.async_extend(input_.one_of(ttls), what->report, status_into(what));
}

void hostile_scene::release(lease& held)
{
    const begun_ptr what = begin("release", max_node_timeout);
    what->owner_id = held.owner_id();
    held.async_release(what->report, status_into(what));
}

void hostile_scene::wait_lost(lease& held)
{
    // Its end depends on extensions that are to come.
    const begun_ptr what = begin("wait_lost", std::chrono::hours{1});
    auto done = [what](error_code, error_code)
    { require(!std::exchange(what->done, true), "an operation ends twice"); };
    auto cancellable = asio::bind_cancellation_slot(what->cancel.slot(), std::move(done));
    held.async_wait_lost(asio::bind_executor(io_->get_executor(), std::move(cancellable)));
}

void hostile_scene::inspect()
{
    const begun_ptr what = begin("inspect", until_warm() + response_timeout_);
    auto done = [this, what](error_code, const inspection& found)
    {
        require(!std::exchange(what->done, true), "an operation ends twice");
        for (const master_inspection& each : found.masters())
        {
            check_words(each.detail.view());
            check_words(each.owner_id.view());
        }
    };
    locks_->async_inspect(
        some_resource(), asio::bind_cancellation_slot(what->cancel.slot(), std::move(done)));
}

void hostile_scene::examine()
{
    const begun_ptr what = begin("examine", until_warm() + 2 * response_timeout_ + 2s);
    auto done = [this, what](error_code, const std::vector<master_examination>& found)
    {
        require(!std::exchange(what->done, true), "an operation ends twice");
        for (const master_examination& each : found)
        {
            check_text(each.name);
            check_words(each.detail);
            check_words(each.server);
            check_words(each.run_id);
        }
    };
    locks_->async_examine(asio::bind_cancellation_slot(what->cancel.slot(), std::move(done)));
}

begun_ptr hostile_scene::shut_down()
{
    begun_ptr what = begin("shutdown", longest_ttl + max_patience * response_timeout_ + max_node_timeout);
    locks_->async_shutdown(status_into(what));
    return what;
}

} // namespace redlock::test
