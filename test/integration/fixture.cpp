// SPDX-License-Identifier: BSL-1.0
// The shared parts of the integration tests.
#include "integration/fixture.hpp"

#include "support/overheard.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <sstream>

namespace redlock::test
{

using namespace std::chrono_literals;

event_loop::event_loop(std::size_t threads) : work_{asio::make_work_guard(context_)}
{
    for (std::size_t index = 0; index < threads; ++index)
    {
        threads_.emplace_back([this] { context_.run(); });
    }
}

event_loop::~event_loop()
{
    stop();
}

void event_loop::stop()
{
    context_.stop();
    for (std::thread& each : threads_)
    {
        each.join();
    }
    threads_.clear();
}

namespace
{

void overhear_end(const error_code& error, const redlock::report& report)
{
    overhear(error.message(), "an error");
    overhear(report.to_string(), "a report");
}

/// The state of an operation in progress: its report, and the promise of its result.
struct lease_wanted
{
    std::promise<acquired> promise;
    redlock::report report;

    static auto handler(std::shared_ptr<lease_wanted> self)
    {
        return [self = std::move(self)](error_code error, redlock::lease lease)
        {
            overhear_end(error, self->report);
            self->promise.set_value({error, std::move(lease), self->report});
        };
    }
};

/// The same for operations without a lease.
struct status_wanted
{
    std::promise<finished> promise;
    redlock::report report;

    static auto handler(std::shared_ptr<status_wanted> self)
    {
        return [self = std::move(self)](error_code error)
        {
            overhear_end(error, self->report);
            self->promise.set_value({error, self->report});
        };
    }
};

} // namespace

std::future<acquired>
start_acquire(redlock::lock_manager& locks, std::string resource, acquire_options options)
{
    const auto wanted = std::make_shared<lease_wanted>();
    locks.async_acquire(std::move(resource), options, wanted->report, lease_wanted::handler(wanted));
    return wanted->promise.get_future();
}

std::future<acquired>
start_try_acquire(redlock::lock_manager& locks, std::string resource, try_options options)
{
    const auto wanted = std::make_shared<lease_wanted>();
    locks.async_try_acquire(std::move(resource), options, wanted->report, lease_wanted::handler(wanted));
    return wanted->promise.get_future();
}

std::future<finished> start_extend(redlock::lease& held, std::chrono::milliseconds ttl)
{
    const auto wanted = std::make_shared<status_wanted>();
    held.async_extend(ttl, wanted->report, status_wanted::handler(wanted));
    return wanted->promise.get_future();
}

std::future<finished> start_release(redlock::lease& held)
{
    const auto wanted = std::make_shared<status_wanted>();
    held.async_release(wanted->report, status_wanted::handler(wanted));
    return wanted->promise.get_future();
}

std::future<error_code> start_shutdown(redlock::lock_manager& locks)
{
    const auto promise = std::make_shared<std::promise<error_code>>();
    locks.async_shutdown([promise](error_code error) { promise->set_value(error); });
    return promise->get_future();
}

acquired acquire(redlock::lock_manager& locks, std::string resource, acquire_options options)
{
    return take(start_acquire(locks, std::move(resource), options), "an acquire");
}

acquired try_acquire(redlock::lock_manager& locks, std::string resource, try_options options)
{
    return take(start_try_acquire(locks, std::move(resource), options), "a try_acquire");
}

finished extend(redlock::lease& held, std::chrono::milliseconds ttl)
{
    return take(start_extend(held, ttl), "an extend");
}

finished release(redlock::lease& held)
{
    return take(start_release(held), "a release");
}

error_code shut_down(redlock::lock_manager& locks)
{
    return take(start_shutdown(locks), "a shutdown");
}

client::client(redlock::config options, std::size_t threads, log_of what)
    : masters_{options.masters.size()}, events_{what}, loop_{threads}
{
    options.observer = events_.observer();
    try
    {
        locks_.emplace(loop_.context(), std::move(options));
    }
    catch (const std::exception& error)
    {
        overhear(error.what(), "an exception");
        throw;
    }
}

void client::wait_for_masters()
{
    for (std::size_t master = 0; master < masters_; ++master)
    {
        events_.wait_for_up(master);
    }
}

redlock::lease client::win(std::string resource, std::chrono::milliseconds ttl)
{
    acquired result = try_acquire(std::move(resource), {.ttl = ttl});
    if (result.error)
    {
        throw std::runtime_error{result.report.to_string()};
    }
    return std::move(result.lease);
}

redlock::master address_of(const server& at, int database)
{
    if (at.port() == 0)
    {
        return redlock::unix_address{
            .path = at.socket_path(),
            .username = at.username(),
            .password = at.password(),
            .database = database};
    }
    return address_behind(at.port(), at, database);
}

redlock::master address_behind(int port, const server& at, int database)
{
    return redlock::tcp_address{
        .host = "127.0.0.1",
        .port = static_cast<std::uint16_t>(port),
        .username = at.username(),
        .password = at.password(),
        .database = database,
        .tls = at.speaks_tls()};
}

std::vector<redlock::master> addresses_of(const std::vector<server>& servers)
{
    std::vector<redlock::master> addresses;
    for (const server& each : servers)
    {
        addresses.push_back(address_of(each));
    }
    return addresses;
}

redlock::config reaching(std::vector<redlock::master> masters)
{
    redlock::config options;
    options.masters = std::move(masters);
    const auto is_tls = [](const redlock::master& one) { return one.is_tls(); };
    if (std::any_of(options.masters.begin(), options.masters.end(), is_tls))
    {
        options.tls.ca_file = certificates_of_world().ca_file;
    }
    return options;
}

redlock::config reaching(const std::vector<server>& servers)
{
    return reaching(addresses_of(servers));
}

redlock::config unhurried(std::vector<redlock::master> masters)
{
    redlock::config options = reaching(std::move(masters));
    options.node_timeout = 20s;
    options.connect_timeout = 20s;
    options.response_timeout = 30s;
    options.reconnect_delay_max = 50ms;
    return options;
}

redlock::config unhurried(const std::vector<server>& servers)
{
    return unhurried(addresses_of(servers));
}

bool comes_true(server& pacemaker, const std::function<bool()>& condition)
{
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition())
    {
        if (std::chrono::steady_clock::now() > end)
        {
            return false;
        }
        // Nothing is ever pushed to this list, so the server answers at the timeout.
        pacemaker.command({"BLPOP", "no list of anybody", "0.01"});
    }
    return true;
}

bool goes_away(server& at, const std::string& key)
{
    return comes_true(at, [&] { return at.command({"EXISTS", key}) == 0; });
}

bool becomes(server& at, const std::string& key, std::string_view value)
{
    return comes_true(at, [&] { return at.command({"GET", key}) == value; });
}

void expect_ok(const reply& answer)
{
    if (!(answer == "OK"))
    {
        throw std::runtime_error{describe(answer)};
    }
}

void change_user(server& at, std::initializer_list<std::string_view> rules)
{
    const std::string name = at.username().empty() ? "default" : at.username();
    for (const std::string_view rule : rules)
    {
        expect_ok(at.command({"ACL", "SETUSER", name, rule}));
    }
}

long long info_number(server& at, std::string_view section, std::string_view field)
{
    const std::string text = at.command({"INFO", section}).text;
    const std::string start = "\n" + std::string{field} + (section == "commandstats" ? ":calls=" : ":");
    const std::size_t found = text.find(start);
    long long number = 0;
    if (found != std::string::npos)
    {
        std::from_chars(text.data() + found + start.size(), text.data() + text.size(), number);
    }
    return number;
}

long long calls_of(server& at, std::string_view command)
{
    return info_number(at, "commandstats", "cmdstat_" + std::string{command});
}

std::vector<std::string> words_of(const std::string& text)
{
    std::istringstream in{text};
    return {std::istream_iterator<std::string>{in}, {}};
}

error_code error_of(const std::exception_ptr& thrown)
{
    if (!thrown)
    {
        return {};
    }
    try
    {
        std::rethrow_exception(thrown);
    }
    catch (const system_error& error)
    {
        return error.code();
    }
}

} // namespace redlock::test
