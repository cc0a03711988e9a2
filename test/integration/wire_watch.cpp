// SPDX-License-Identifier: BSL-1.0
// Clients whose reports are compared with the wire.
#include "integration/wire_watch.hpp"

#include <exception>
#include <future>
#include <string_view>
#include <utility>
#include <variant>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

constexpr std::string_view key_prefix = "lock:";

/// Returns the name of a command, or the meaning of a script, which follows from the number of its arguments. A release
/// and an extension have as many: they are told apart by the digest (test/unit/golden.txt) or the text.
std::string meaning_of(const command& words)
{
    const std::string name = name_of(words);
    if (name != "EVAL" && name != "EVALSHA")
    {
        return name;
    }
    const bool extends = words[1] == "0fb1b4f8c33500117953de4d978566ebb71567c7" ||
                         (words[1].find("pexpire") != std::string::npos &&
                          words[1].find("redlock-queue:") == std::string::npos);
    switch (words.size()) // With its name, the script, the number of keys and the key.
    {
    case 5:  // The owner id.
    case 8:  // The owner id, the grace, "left", the member.
    case 11: // The owner id, the grace, "lost", and so on.
        return "release";
    case 6:
        return extends ? "extend" : "release"; // The owner id, and the ttl or the grace.
    case 10:
        return "ask";
    default:
        return name;
    }
}

/// Returns a tap that records the exchanges of a client with a master.
proxy_tap tap_of(wire_watch& watch, std::size_t master, int client)
{
    return [&watch, master, client, links = std::map<std::size_t, exchange_reader>{}](
               std::size_t link, bool to_server, std::string_view bytes) mutable
    {
        exchange_reader& reader = links[link];
        try
        {
            to_server ? reader.feed_commands(bytes) : reader.feed_replies(bytes);
            while (const std::optional<exchange> answered = reader.next())
            {
                watch.record(master, client, *answered);
            }
        }
        catch (const std::exception& error)
        {
            watch.contradict(error.what());
        }
    };
}

} // namespace

void wire_watch::record(std::size_t master, int client, const exchange& answered)
{
    const std::string what = meaning_of(answered.words);
    const std::lock_guard lock{mutex_};
    questions_ += what == "ask" ? 1U : 0U;
    if (auto wrong =
            reports_.record(master, client, clock::now(), what, answered.words, answered.reply, false))
    {
        contradictions_.push_back(*std::move(wrong));
    }
}

void wire_watch::check(const std::optional<std::string>& contradiction, const report& told)
{
    if (contradiction)
    {
        contradictions_.push_back(*contradiction);
    }
    for (const master_report& each : told.masters())
    {
        ++seen_[{told.operation, each.vote, each.reason}];
    }
}

void wire_watch::decided(int client, const round_decided& round)
{
    const std::lock_guard lock{mutex_};
    ++rounds_;
    check(reports_.decided(client, round), round.report);
}

void wire_watch::ended(
    int client, clock::time_point since, const std::string& resource, const std::string& owner_id,
    const report& told)
{
    const std::lock_guard lock{mutex_};
    check(
        owner_id.empty() ? reports_.refused(client, since, std::string{key_prefix} + resource, told)
                         : reports_.reported(client, since, owner_id, told),
        told);
}

void wire_watch::inspected(
    int client, clock::time_point since, const std::string& resource, const inspection& seen)
{
    const std::lock_guard lock{mutex_};
    check(reports_.inspected(client, since, std::string{key_prefix} + resource, seen), {});
}

void wire_watch::contradict(std::string what)
{
    const std::lock_guard lock{mutex_};
    contradictions_.push_back(std::move(what));
}

std::vector<std::string> wire_watch::contradictions() const
{
    const std::lock_guard lock{mutex_};
    return contradictions_;
}

std::size_t wire_watch::seen(operation what, vote value, error_code reason) const
{
    const std::lock_guard lock{mutex_};
    const auto found = seen_.find({what, value, reason});
    return found == seen_.end() ? 0 : found->second;
}

std::size_t wire_watch::rounds() const
{
    const std::lock_guard lock{mutex_};
    return rounds_;
}

std::size_t wire_watch::questions() const
{
    const std::lock_guard lock{mutex_};
    return questions_;
}

watched_client::watched_client(wire_watch& watch, int number, std::chrono::milliseconds node_timeout)
    : watch_{watch}, number_{number}
{
    std::vector<redlock::master> masters;
    for (const server& each : watch_.servers())
    {
        proxies_.push_back(std::make_unique<proxy>(each.port(), tap_of(watch_, masters.size(), number_)));
        masters.push_back(address_behind(proxies_.back()->port(), each));
    }
    redlock::config options = unhurried(std::move(masters));
    options.node_timeout = node_timeout;
    options.key_prefix = key_prefix;
    options.retry_delay_max = 20ms;
    options.probe_interval = 1h; // A proxy sees only the commands of the test.
    options.observer = events_.observer();
    options.observer.on_event = [this, log = options.observer.on_event](const redlock::event& what)
    {
        log(what);
        if (const auto* round = std::get_if<round_decided>(&what))
        {
            watch_.decided(number_, *round);
        }
    };
    locks_.emplace(loop_.context(), std::move(options));
}

void watched_client::wait_for_masters()
{
    for (std::size_t master = 0; master < proxies_.size(); ++master)
    {
        events_.wait_for_up(master);
    }
}

acquired watched_client::checked(clock::time_point since, const std::string& resource, acquired result)
{
    watch_.ended(number_, since, resource, std::string{result.lease.owner_id()}, result.report);
    return result;
}

acquired watched_client::acquire(const std::string& resource, acquire_options options)
{
    const auto since = clock::now();
    return checked(since, resource, test::acquire(*locks_, resource, options));
}

acquired watched_client::try_acquire(const std::string& resource)
{
    return try_acquire(resource, {}, [] {});
}

acquired watched_client::try_acquire(
    const std::string& resource, const std::vector<std::size_t>& masters,
    const std::function<void()>& when_sent)
{
    std::vector<std::size_t> so_far;
    for (const auto& each : proxies_)
    {
        so_far.push_back(each->bytes_to_server());
    }
    const auto since = clock::now();
    std::future<acquired> result = start_try_acquire(*locks_, resource, {.ttl = long_ttl});
    for (const std::size_t each : masters)
    {
        if (!way_to(each).wait_for_bytes_to_server(so_far[each] + 1, patience))
        {
            throw stuck{"a master was sent nothing within a minute"};
        }
    }
    when_sent();
    return checked(since, resource, take(std::move(result), "a try_acquire"));
}

finished watched_client::extend(redlock::lease& held)
{
    const std::string resource{held.resource()};
    const std::string owner_id{held.owner_id()};
    const auto since = clock::now();
    finished result = test::extend(held, 2 * long_ttl);
    watch_.ended(number_, since, resource, owner_id, result.report);
    return result;
}

finished watched_client::release(redlock::lease& held)
{
    const std::string resource{held.resource()};
    const std::string owner_id{held.owner_id()};
    const auto since = clock::now();
    finished result = test::release(held);
    watch_.ended(number_, since, resource, owner_id, result.report);
    return result;
}

inspection watched_client::inspect(const std::string& resource)
{
    const auto promise = std::make_shared<std::promise<inspection>>();
    const auto since = clock::now();
    locks_->async_inspect(
        resource, [promise](error_code, inspection seen) { promise->set_value(std::move(seen)); });
    inspection seen = take(promise->get_future(), "an inspection");
    watch_.inspected(number_, since, resource, seen);
    return seen;
}

} // namespace redlock::test
