// SPDX-License-Identifier: BSL-1.0
// Records the events of a test's managers.
#include "integration/fixture.hpp"

#include "support/overheard.hpp"

#include <algorithm>

namespace redlock::test
{

std::string describe(const redlock::event& what)
{
    struct writer
    {
        std::string operator()(const master_up& one) const { return "up " + one.name + " " + one.server; }
        std::string operator()(const master_down& one) const
        {
            return "down " + one.name + ": " + one.reason.message() + " " + one.detail;
        }
        std::string operator()(const master_warning& one) const
        {
            return "at risk " + one.name + ": " + std::string{to_string(one.what)} + " " + one.detail;
        }
        std::string operator()(const round_decided& one) const
        {
            return "round of " + one.resource + ": " + one.report.to_string();
        }
        std::string operator()(const acquire_queued& one) const
        {
            return "queued for " + one.resource + " at " + one.queue_master + ": " +
                   std::to_string(one.position.ahead) + " ahead";
        }
        std::string operator()(const lease_extended& one) const
        {
            return "extended " + one.resource + " " + one.owner_id;
        }
        std::string operator()(const redlock::lease_lost& one) const
        {
            return "lost " + one.resource + " " + one.owner_id + ": " + one.reason.message();
        }
        std::string operator()(const lease_released& one) const
        {
            return "released " + one.resource + " " + one.owner_id + ": " + one.result.message();
        }
        std::string operator()(const events_dropped& one) const
        {
            return "dropped " + std::to_string(one.count);
        }
        std::string operator()(const master_quarantined& one) const
        {
            return "quarantined " + one.name + ": " + std::string{to_string(one.why)};
        }
        std::string operator()(const master_armed& one) const { return "armed " + one.name; }
    };
    return std::visit(writer{}, what);
}

redlock::observer event_log::observer()
{
    const auto add = [this](const redlock::event& what)
    {
        overhear(describe(what), "an event");
        const bool of_masters =
            std::holds_alternative<master_up>(what) || std::holds_alternative<master_down>(what) ||
            std::holds_alternative<master_warning>(what) ||
            std::holds_alternative<master_quarantined>(what) || std::holds_alternative<master_armed>(what);
        if (what_ == log_of::masters && !of_masters)
        {
            return;
        }
        const std::lock_guard lock{mutex_};
        events_.push_back(what);
        changed_.notify_all();
    };
    return {.on_event = add, .executor = {}, .max_waiting = 1'000'000};
}

std::vector<redlock::event> event_log::events() const
{
    const std::lock_guard lock{mutex_};
    return events_;
}

void event_log::wait_until(
    const std::function<bool(const std::vector<redlock::event>&)>& condition, std::string_view what)
{
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, patience, [&] { return condition(events_); }))
    {
        throw stuck{"not seen within a minute: " + std::string{what}};
    }
}

namespace
{

template <class Event>
std::size_t count_of(const std::vector<redlock::event>& events, std::size_t master)
{
    const auto is_it = [master](const redlock::event& one)
    {
        const Event* found = std::get_if<Event>(&one);
        return found != nullptr && found->index == master;
    };
    return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), is_it));
}

} // namespace

void event_log::wait_for_up(std::size_t master, std::size_t times)
{
    const auto is_up = [=](const auto& events) { return count_of<master_up>(events, master) >= times; };
    wait_until(is_up, "master " + std::to_string(master) + " comes up");
}

void event_log::wait_for_down(std::size_t master, std::size_t times)
{
    const auto is_down = [=](const auto& events) { return count_of<master_down>(events, master) >= times; };
    wait_until(is_down, "master " + std::to_string(master) + " goes down");
}

std::size_t event_log::times_up(std::size_t master) const
{
    const std::lock_guard lock{mutex_};
    return count_of<master_up>(events_, master);
}

std::vector<redlock::master_down> event_log::downs_of(std::size_t master) const
{
    std::vector<redlock::master_down> found;
    for (const redlock::event& one : events())
    {
        const auto* down = std::get_if<redlock::master_down>(&one);
        if (down != nullptr && down->index == master)
        {
            found.push_back(*down);
        }
    }
    return found;
}

} // namespace redlock::test
