// SPDX-License-Identifier: BSL-1.0
// A client that inspects, examines, and sends invalid requests.
#include "observer_client.hpp"

#include "cluster_run.hpp"

#include "api/create.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/hana/functional/overload.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace redlock::test
{

namespace asio = boost::asio;

using namespace std::chrono_literals;

namespace
{

/// An acquire that has to be refused, and why.
struct wrong_request
{
    errc why;
    std::function<void(keep_options&)> change;
    bool kept = false;
    std::string resource = "any";
};

std::vector<wrong_request> wrong_requests()
{
    constexpr std::size_t too_long = 1025;
    const auto nothing = [](keep_options&) {};
    return {
        {errc::invalid_resource, nothing, false, ""},
        {errc::invalid_resource, nothing, false, std::string(too_long, 'r')},
        {errc::invalid_ttl, [](keep_options& it) { it.ttl = 0ms; }},
        {errc::invalid_ttl, [](keep_options& it) { it.ttl = 3ms; }},
        {errc::invalid_ttl, [](keep_options& it) { it.ttl = 24h * 365 * 101; }},
        {errc::invalid_wait, [](keep_options& it) { it.wait = -1ms; }},
        {errc::invalid_max_rounds, [](keep_options& it) { it.max_rounds = 0; }},
        {errc::invalid_min_validity, [](keep_options& it) { it.min_validity = -1ms; }},
        {errc::invalid_min_validity, [](keep_options& it) { it.min_validity = it.ttl; }},
        {errc::invalid_schedule, [](keep_options& it) { it.extend_every = 0ms; }, true},
        {errc::invalid_schedule, [](keep_options& it) { it.extend_every = it.ttl; }, true},
        {errc::invalid_schedule, [](keep_options& it) { it.stop_margin = -1ms; }, true},
        {errc::invalid_max_hold, [](keep_options& it) { it.max_hold = 0ms; }, true},
    };
}

/// What makes the options of a manager useless.
const std::vector<std::function<void(config&)>>& wrong_changes()
{
    constexpr std::size_t too_long = 2000;
    static const std::vector<std::function<void(config&)>> all{
        [](config& it) { it.masters.clear(); },
        [](config& it) { it.masters.resize(max_masters + 1, it.masters.front()); },
        [](config& it) { it.masters.push_back(it.masters.front()); },
        [](config& it) { it.node_timeout = 0ms; },
        [](config& it) { it.connect_timeout = 2h; },
        [](config& it) { it.drift_factor = -1; },
        [](config& it) { it.retry_delay_min = it.retry_delay_max + 1ms; },
        [](config& it) { it.key_prefix.assign(too_long, 'k'); },
        [](config& it) { it.client_name = "two words"; },
        [](config& it) { it.tls.ca_file = "ca.pem"; },
        [](config& it)
        {
            it.masters.emplace_back("rediss://elsewhere");
            it.tls.certificate_file = "client.pem";
        },
        [](config& it) { it.max_outstanding_keys = 0; },
        [](config& it) { it.max_write_queue_bytes = 1; },
        [](config& it) { it.observer.max_waiting = 0; },
    };
    return all;
}

constexpr std::array wrong_urls{
    "",
    "redis//host",
    "http://host",
    "redis://",
    "redis://host:0",
    "redis://host:65536",
    "redis://:pa55w0rd@host:port",
    "redis://user:pa55w0rd@host/first",
    "redis://host?db=1",
    "redis://us er@host",
    "redis://%zz@host",
    "redis://a/b@host",
    "redis://[::1",
    "redis://[v1.x]",
    "unix:relative",
    "unix://",
    "unix:///socket?name=x",
};
constexpr std::array right_urls{
    "redis://host",
    "REDIS://Host:6380/2",
    "redis://:pa55w0rd@host",
    "redis://user:pa55%77%30rd@[::1]:6379",
    "rediss://10.0.0.1",
    "unix:///run/redis.sock",
    "unix:///run/redis.sock?db=3",
};

} // namespace

void observer_client::start()
{
    later();
}

void observer_client::later()
{
    if (!stopping_)
    {
        home_.after(draws_.between(0us, 10ms), [this] { act(); });
    }
}

void observer_client::act()
{
    if (stopping_)
    {
        return;
    }
    switch (draws_.below(8))
    {
    case 0:
        examine();
        break;
    case 1:
        set_up_wrongly();
        break;
    case 2:
        name_a_master();
        break;
    case 3:
    case 4:
        ask_wrongly();
        break;
    default:
        inspect();
        break;
    }
    later();
}

void observer_client::inspect()
{
    const std::size_t resource = draws_.below(home_.cluster().drawn().resources);
    const call_ptr asking = home_.begin(action::inspect, resource);
    auto done = [this, asking, resource,
                 began = home_.cluster().world().now()](error_code error, const inspection& seen)
    {
        home_.end(asking, error);
        oracle& watch = home_.cluster().watch();
        watch.check_reported(watch.reports().inspected(
            home_.number(), began, key_of(home_.cluster().resource_name(resource)), seen));
        if (!seen.holder().empty())
        {
            check_owner("an inspection", seen.holder());
            const auto all = seen.masters();
            const auto have = std::count_if(
                all.begin(), all.end(),
                [&](const master_inspection& each) { return each.owner_id.view() == seen.holder(); });
            home_.cluster().watch().check(
                static_cast<std::size_t>(have) >= seen.quorum(), "inspection",
                "an inspection names a holder without a quorum of masters");
        }
        for (std::size_t index = 0; index < seen.masters().size(); ++index)
        {
            note(seen.masters()[index].reason);
            read(seen.name(index), seen.masters()[index].detail.view());
        }
    };
    home_.locks().async_inspect(
        home_.cluster().resource_name(resource),
        asio::bind_cancellation_slot(asking->cancel.slot(), std::move(done)));
}

/// It takes more than a second: one at a time.
void observer_client::examine()
{
    if (std::exchange(examining_, true))
    {
        return;
    }
    const call_ptr asking = home_.begin(action::examine);
    auto done = [this, asking](error_code error, const std::vector<master_examination>& seen)
    {
        home_.end(asking, error);
        examining_ = false;
        for (const master_examination& each : seen)
        {
            note(each.reason);
            read(each.name, each.detail);
            for (const master_issue& one : each.risks)
            {
                home_.cluster().told().add({static_cast<std::uint64_t>(one.what)});
                read(to_string(one.what), one.detail);
            }
            home_.cluster().watch().check(
                each.fastest_round_trip <= each.median_round_trip, "inspection",
                "the fastest of a master's round trips is slower than the median");
        }
    };
    home_.locks().async_examine(asio::bind_cancellation_slot(asking->cancel.slot(), std::move(done)));
}

void observer_client::ask_wrongly()
{
    static const std::vector<wrong_request> all = wrong_requests();
    const wrong_request& one = all[draws_.below(all.size())];
    keep_options with{.ttl = 1s, .max_hold = no_limit};
    one.change(with);
    const call_ptr asking = home_.begin(action::wrong_request);
    const auto told = std::make_shared<report>();
    auto done = [this, asking, told, why = one.why](error_code error, const lease& none)
    {
        const bool as_it_should =
            error == why && !none && !told->argument_error.empty() && told->masters().empty();
        home_.cluster().watch().check(
            as_it_should || error == asio::error::operation_aborted ||
                ((error == errc::closed || error == errc::too_many_operations) &&
                 told->argument_error.empty()),
            "refusal", "what can't be done isn't refused as it should: {}", told->to_string());
        read(*told);
        read(error.message());
        home_.end(asking, as_it_should ? error_code{} : error);
    };
    auto cancellable = asio::bind_cancellation_slot(asking->cancel.slot(), std::move(done));
    if (one.kept)
    {
        home_.locks().async_acquire_kept(one.resource, with, *told, std::move(cancellable));
        return;
    }
    const acquire_options plain{with.ttl, with.wait, with.min_validity, with.max_rounds};
    home_.locks().async_acquire(one.resource, plain, *told, std::move(cancellable));
}

void observer_client::set_up_wrongly()
{
    const auto& all = wrong_changes();
    config options = home_.cluster().options();
    all[draws_.below(all.size())](options);
    bool refused = false;
    try
    {
        api::create(home_.context().get_executor(), std::move(options), home_.shared_environment());
    }
    catch (const system_error& complaint)
    {
        refused = complaint.code() == errc::invalid_config || complaint.code() == errc::invalid_master;
        read(complaint.what());
    }
    home_.cluster().watch().check(refused, "refusal", "a manager is made with options that can't be used");
}

void observer_client::name_a_master()
{
    read(master{right_urls[draws_.below(right_urls.size())]}.name());
    bool refused = false;
    try
    {
        const master useless{wrong_urls[draws_.below(wrong_urls.size())]};
    }
    catch (const system_error& complaint)
    {
        refused = complaint.code() == errc::invalid_master;
        read(complaint.what());
    }
    home_.cluster().watch().check(refused, "refusal", "a URL is taken that can't be used");
}

void observer_client::on_event(const event& what)
{
    home_.say(action::notified);
    // In the trace, the number of an event is its place in the variant.
    home_.cluster().told().add({what.index() + 1});
    std::visit(
        boost::hana::overload(
            [&](const master_up& up)
            {
                note();
                read(up.name, up.server);
            },
            [&](const master_down& down)
            {
                note(down.reason);
                read(down.name, down.detail);
            },
            [&](const master_warning& at_risk)
            {
                note();
                read(at_risk.name, to_string(at_risk.what), at_risk.detail);
            },
            [&](const round_decided& decided)
            {
                note();
                check_round(decided);
            },
            [&](const acquire_queued& queued)
            {
                note();
                read(queued.queue_master);
            },
            [&](const lease_extended& extended)
            {
                note();
                check_owner("an event", extended.owner_id);
            },
            [&](const lease_lost& lost)
            {
                note(lost.reason);
                check_owner("an event", lost.owner_id);
            },
            [&](const lease_released& released)
            {
                note(released.result);
                check_owner("an event", released.owner_id);
            },
            [&](const events_dropped&) { note(); },
            [&](const master_quarantined& quarantined)
            {
                note();
                read(quarantined.name, to_string(quarantined.why));
            },
            [&](const master_armed& armed)
            {
                note();
                read(armed.name, armed.incarnation);
            }),
        what);
}

/// Adds an error to the trace, and reads its message.
void observer_client::note(error_code reason)
{
    home_.cluster().told().add_error(reason);
    read(reason.message());
}

void observer_client::check_round(const round_decided& decided)
{
    const report& said = decided.report;
    read(said);
    if (said.operation == operation::acquire)
    {
        home_.cluster().watch().check_verdict(home_, said, said.result);
    }
}

void observer_client::check_owner(std::string_view what, std::string_view owner_id)
{
    home_.cluster().watch().check(
        home_.cluster().watch().was_sent(owner_id), "events", "{} names an owner id that was never sent",
        what);
}

void observer_client::read(const report& told)
{
    home_.cluster().told().add_report(told);
    read(told.to_string());
}

void observer_client::check_text(std::string_view text)
{
    const bool printable = std::all_of(
        text.begin(), text.end(), [](char each) { return (each >= ' ' && each <= '~') || each == '\n'; });
    home_.cluster().watch().check(printable, "words", "a text isn't printable");
    home_.cluster().watch().check(
        text.find(password) == std::string_view::npos, "words", "a text has a password in it");
}

} // namespace redlock::test
