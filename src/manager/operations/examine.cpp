// SPDX-License-Identifier: BSL-1.0
// Examine: checks for a second whether the masters are suited to keep locks.
#include "core/clock_watch.hpp"
#include "core/server_error.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/broadcast_query.hpp"
#include "manager/operations/operations.hpp"
#include "net/guard_commands.hpp"
#include "resp/serialise.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::manager
{

namespace
{

constexpr int clock_samples = 11; // Samples of each master's clock.
constexpr std::chrono::milliseconds between_looks{100};

/// The replies to one TIME, with the time at which each arrived.
class clocks final : public reply_collector
{
  public:
    clocks(std::size_t masters, runtime::scheduler& strand, runtime::async_event& listener)
        : reply_collector{masters, listener}, strand_{strand}, sent_{strand.now()}, shown_(masters)
    {
    }

    const std::optional<core::clock_reading>& of(std::size_t master) const { return shown_[master]; }

  private:
    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        const auto theirs = net::read_time(reply);
        if (theirs)
        {
            shown_[master] = core::clock_reading{sent_, strand_.now(), *theirs};
        }
        return theirs || reply.is_error();
    }
    void take_failure(std::size_t, const net::answer&) noexcept override {}

    runtime::scheduler& strand_;
    clock::time_point sent_;
    std::vector<std::optional<core::clock_reading>> shown_;
};

/// The values of the settings that match a pattern.
class settings final : public reply_collector
{
  public:
    settings(std::size_t masters, const redactor& redacted, runtime::async_event& listener)
        : reply_collector{masters, listener}, redacted_{redacted}, settings_(masters)
    {
    }

    void write_to(std::vector<master_examination>& found) const
    {
        for (std::size_t master = 0; master < found.size(); ++master)
        {
            for (const auto& [name, value] : settings_[master])
            {
                std::optional<std::string>* place = place_of(found[master], name);
                if (place != nullptr)
                {
                    *place = value;
                }
            }
        }
    }

  private:
    static std::optional<std::string>* place_of(master_examination& of, std::string_view name)
    {
        if (name == "appendonly")
        {
            return &of.appendonly;
        }
        if (name == "appendfsync")
        {
            return &of.appendfsync;
        }
        return name == "save" ? &of.save : nullptr;
    }

    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        for (const std::string_view name : {"appendonly", "appendfsync", "save"})
        {
            if (const resp::node* value = reply.find(name))
            {
                settings_[master].emplace_back(name, redacted_.show(value->text).view());
            }
        }
        const resp::kind kind = reply.root().kind;
        const bool has_pairs =
            (kind == resp::kind::map || kind == resp::kind::array) && reply.nodes.size() % 2 == 1;
        return has_pairs || reply.is_error();
    }
    void take_failure(std::size_t, const net::answer&) noexcept override {}

    const redactor& redacted_;
    std::vector<std::vector<std::pair<std::string, std::string>>> settings_;
};

/// Which commands of a vote, and of arming, the masters of a group refuse.
class vote_trials final : public reply_collector
{
  public:
    vote_trials(
        std::size_t masters, std::size_t tried, const redactor& redacted, runtime::async_event& listener)
        : reply_collector{tried, listener}, redacted_{redacted}, results_(masters)
    {
    }

    /// Expects a reply of this master.
    void expect(std::size_t master) { results_[master].reason = master_errc::timed_out; }
    void write_to(std::vector<master_examination>& found) const
    {
        for (std::size_t master = 0; master < found.size(); ++master)
        {
            std::optional<guarded_examination>& guarded = found[master].guarded;
            if (!guarded)
            {
                continue;
            }
            const result& its = results_[master];
            std::optional<master_issue> arming = its.arming_refused;
            if (!guarded->reason)
            {
                guarded->reason = its.reason;
                guarded->detail = its.detail;
            }
            else if (!arming)
            {
                arming = its.vote_refused; // Arming needs these commands, too.
            }
            if (arming)
            {
                found[master].risks.push_back(*std::move(arming));
            }
        }
    }

  private:
    struct result
    {
        error_code reason;
        std::string detail;
        std::optional<master_issue> vote_refused;
        std::optional<master_issue> arming_refused;
    };

    master_issue refusal(std::string_view command, std::string_view error) const
    {
        return {
            risk::arming_refused,
            std::string{redacted_.show(command).view()}.append(": ").append(redacted_.show(error).view()),
            net::reason_of(core::classify(error))};
    }
    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        result& its = results_[master];
        its = {};
        if (reply.is_error())
        {
            // Locks need no EVAL, so this tells nothing of the vote.
            its.arming_refused = refusal("EVAL", reply.text());
            return true;
        }
        const std::optional<net::vote_trial> tried = net::read_vote_trial(reply);
        if (!tried)
        {
            its.reason = master_errc::protocol_error;
            return false;
        }
        if (!tried->of_vote.name.empty())
        {
            its.vote_refused = refusal(tried->of_vote.name, tried->of_vote.error);
            its.reason = its.vote_refused->reason;
            its.detail = its.vote_refused->detail;
        }
        if (!tried->of_arming.name.empty())
        {
            its.arming_refused = refusal(tried->of_arming.name, tried->of_arming.error);
        }
        return true;
    }
    void take_failure(std::size_t master, const net::answer& none) noexcept override
    {
        results_[master].reason = none.reason;
        results_[master].detail = redacted_.show(none.text).view();
    }

    const redactor& redacted_;
    std::vector<result> results_;
};

/// Evaluates the samples of each master's clock.
class round_trips
{
  public:
    round_trips(std::size_t masters, double drift_factor)
        : took_(masters), watches_(masters, core::clock_watch{drift_factor})
    {
    }

    void add(std::size_t master, const core::clock_reading& one, master_examination& found)
    {
        took_[master].push_back(one.received - one.sent);
        if (const std::optional<core::clock_deviation> off = watches_[master].add(one))
        {
            found.risks.push_back({risk::clock, net::clock_complaint(off->by)});
        }
    }

    void write_to(std::vector<master_examination>& found)
    {
        for (std::size_t master = 0; master < found.size(); ++master)
        {
            std::vector<clock::duration>& took = took_[master];
            if (!took.empty())
            {
                std::sort(took.begin(), took.end());
                found[master].fastest_round_trip = took.front();
                found[master].median_round_trip = took[took.size() / 2];
            }
        }
    }

  private:
    std::vector<std::vector<clock::duration>> took_;
    std::vector<core::clock_watch> watches_;
};

} // namespace

runtime::detached_task examine(lock_service& service, examine_call call)
{
    active_operation self{service, call.id};
    std::vector<master_examination> found;
    if (const error_code refused = service.refusal())
    {
        service.complete(call.done, refused, std::move(found));
        co_return;
    }
    while (service.connecting() && !self.stopped())
    {
        co_await self.wake_event;
    }
    const std::size_t masters = service.names()->size();
    std::string command;
    std::deque<broadcast_query<settings>> queries;
    for (const std::string_view pattern : {"append*", "save"})
    {
        const broadcast_query<settings>& query =
            queries.emplace_back(masters, service.redacted(), self.wake_event);
        command.clear();
        resp::append_command(command, {"CONFIG", "GET", pattern});
        service.broadcast(command, *query);
        const clock::time_point ends = service.strand().now() + service.options().response_timeout;
        const alarm_clock enough{service.strand(), self.wake_event, ends};
        while (!query->complete() && service.strand().now() < ends && !self.stopped())
        {
            co_await self.wake_event;
        }
    }
    std::optional<broadcast_query<vote_trials>> trials;
    if (const guard* const group = service.guarded())
    {
        std::vector<std::size_t> connected;
        for (std::size_t master = 0; master < masters; ++master)
        {
            if (service.connection_to(master).ready())
            {
                connected.push_back(master);
            }
        }
        trials.emplace(masters, connected.size(), service.redacted(), self.wake_event);
        for (const std::size_t master : connected)
        {
            command.clear();
            net::append_vote_trial(command, group->keys(), service.options().masters[master].database());
            (*trials)->expect(master);
            service.send_query(master, command, **trials);
        }
    }
    // A reply that arrives after the next sample was sent still counts, because a master may be far away.
    std::deque<broadcast_query<clocks>> samples;
    for (int sample = 0; sample < clock_samples && !self.stopped(); ++sample)
    {
        const broadcast_query<clocks>& query =
            samples.emplace_back(masters, service.strand(), self.wake_event);
        command.clear();
        resp::append_command(command, {"TIME"});
        service.broadcast(command, *query);
        const clock::time_point next = service.strand().now() + between_looks;
        const alarm_clock pause{service.strand(), self.wake_event, next};
        while (service.strand().now() < next && !self.stopped())
        {
            co_await self.wake_event;
        }
    }
    // A master answers in order, so the reply to the last sample is the last one.
    const clock::time_point last = service.strand().now() + service.options().response_timeout;
    const alarm_clock enough{service.strand(), self.wake_event, last};
    while (!samples.empty() && !samples.back()->complete() && service.strand().now() < last &&
           !self.stopped())
    {
        co_await self.wake_event;
    }
    // Read at the end, so that a master that was disconnected meanwhile is reported as such.
    found = service.describe_masters();
    round_trips trips{masters, service.options().drift_factor};
    for (const broadcast_query<clocks>& query : samples)
    {
        for (std::size_t master = 0; master < masters; ++master)
        {
            if (query->of(master))
            {
                trips.add(master, *query->of(master), found[master]);
            }
        }
    }
    trips.write_to(found);
    for (const broadcast_query<settings>& query : queries)
    {
        query->write_to(found);
    }
    if (trials)
    {
        (*trials)->write_to(found);
    }
    const error_code result = self.stopped();
    service.complete(call.done, result, std::move(found));
}

} // namespace redlock::manager
