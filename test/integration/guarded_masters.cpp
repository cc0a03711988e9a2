// SPDX-License-Identifier: BSL-1.0
// Real servers as a guarded group.
#include "integration/guarded_masters.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace redlock::test
{

using namespace std::chrono_literals;

namespace
{

std::string replication_id_of(server& of)
{
    const std::string info = of.command({"INFO", "replication"}).text;
    const std::string name = "master_replid:";
    return info.substr(info.find(name) + name.size(), 40);
}

std::string setting(server& of, std::string_view name)
{
    return of.command({"CONFIG", "GET", name}).elements.at(1).text;
}

/// Finds the first event of this kind and master since a mark.
template <class Event>
const Event* find_event(const std::vector<redlock::event>& events, std::size_t master, std::size_t since)
{
    for (std::size_t at = since; at < events.size(); ++at)
    {
        const auto* found = std::get_if<Event>(&events[at]);
        if (found != nullptr && found->index == master)
        {
            return found;
        }
    }
    return nullptr;
}

} // namespace

server_options keeping_data(const std::string& program, persistence how)
{
    server_options options = server_options::plain();
    options.program = program;
    options.settings = {"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"};
    if (how == persistence::append_only || how == persistence::both)
    {
        options.settings.insert(options.settings.end(), {"--appendonly", "yes", "--appendfsync", "always"});
    }
    if (how == persistence::both)
    {
        options.settings.insert(options.settings.end(), {"--save", "3600 1000000"});
    }
    return options;
}

guarded_masters::guarded_masters(
    std::size_t masters, std::chrono::milliseconds max_ttl, const server_options& how)
    : guarded_masters{start_servers(masters, how), max_ttl}
{
}

guarded_masters::guarded_masters(std::vector<server> servers, std::chrono::milliseconds max_ttl)
    : max_ttl_{max_ttl}, servers_{std::move(servers)}
{
    for (std::size_t master = 0; master < size(); ++master)
    {
        arm(master);
    }
}

void guarded_masters::arm(std::size_t master)
{
    std::string record = group;
    for (std::size_t each = 0; each < size(); ++each)
    {
        record += fmt::format(" {}={}", each + 1, address_of(servers_[each]).name());
    }
    server& to = at(master);
    const std::string text = fmt::format(
        "redlock 1 {} {} {} {} clocks armed new fedcba987654321{} {}", group, master + 1, size(),
        max_ttl_.count(), master, replication_id_of(to));
    expect_ok(to.command({"SET", members, record}));
    expect_ok(to.command({"SET", guard, text}));
    to.command({"HSET", fence, "floor", "1000"});
    if (!to.username().empty())
    {
        expect_ok(to.command({"ACL", "SETUSER", to.username(), "+hvals"}));
    }
    if (setting(to, "appendonly") == "yes" && setting(to, "save") != "")
    {
        expect_ok(to.command({"SAVE"}));
    }
}

redlock::config guarded_masters::options() const
{
    redlock::config with = unhurried(servers_);
    with.guarded.emplace();
    // A part of every ttl that the group allows, and much longer than an answer takes.
    with.node_timeout = std::min<std::chrono::milliseconds>(20s, max_ttl_ / 4);
    // So that a quarantine isn't over before it is seen.
    with.probe_interval = 100ms;
    return with;
}

std::string guarded_masters::marker(std::size_t master)
{
    return at(master).command({"GET", guard}).text;
}

std::string guarded_masters::replication_id(std::size_t master)
{
    return replication_id_of(at(master));
}

bool guarded_masters::is_armed(std::size_t master)
{
    const std::string text = marker(master);
    return text.find(" armed ") != std::string::npos && text.ends_with(replication_id(master));
}

std::uint64_t guarded_masters::largest_counter(std::size_t master)
{
    std::uint64_t largest = 0;
    for (const reply& each : at(master).command({"HVALS", fence}).elements)
    {
        largest = std::max<std::uint64_t>(largest, std::stoull(each.text));
    }
    return largest;
}

void guarded_masters::restart_with_data(std::size_t master)
{
    if (setting(at(master), "appendonly") == "no")
    {
        expect_ok(at(master).command({"SAVE"}));
    }
    at(master).restart();
}

void guarded_masters::restart_without_data(std::size_t master)
{
    const std::filesystem::path directory{at(master).directory()};
    at(master).kill();
    std::filesystem::remove(directory / "dump.rdb");
    std::filesystem::remove_all(directory / "appendonlydir");
    at(master).restart();
}

void guarded_masters::demote_and_promote(std::size_t master)
{
    expect_ok(at(master).command({"REPLICAOF", "127.0.0.1", "1"}));
    expect_ok(at(master).command({"REPLICAOF", "NO", "ONE"}));
}

void guarded_masters::fail_over(std::size_t master, server replica)
{
    const int port = at(master).port();
    at(master).give_up_port();
    expect_ok(replica.command({"REPLICAOF", "NO", "ONE"}));
    replica.move_to_port(port);
    at(master) = std::move(replica);
}

void guarded_masters::fall_back_to(std::size_t master, server& replica)
{
    expect_ok(replica.command({"REPLICAOF", "NO", "ONE"}));
    expect_ok(at(master).command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())}));
    const auto has_its_data = [&]
    {
        const std::string info = at(master).command({"INFO", "replication"}).text;
        return info.find("master_link_status:up") != std::string::npos;
    };
    if (!comes_true(replica, has_its_data))
    {
        throw stuck{"a master doesn't get the data of its replica"};
    }
    expect_ok(at(master).command({"REPLICAOF", "NO", "ONE"}));
}

guarded_clients::guarded_clients(const redlock::config& options, std::size_t managers)
{
    for (std::size_t each = 0; each < managers; ++each)
    {
        redlock::config with = options;
        with.observer = events_.observer();
        managers_.emplace_back(loop_.context(), std::move(with));
    }
}

redlock::lock_manager& guarded_clients::operator[](std::size_t manager)
{
    return *std::next(managers_.begin(), static_cast<std::ptrdiff_t>(manager));
}

redlock::master_quarantined guarded_clients::wait_for_quarantine(std::size_t master, std::size_t since)
{
    redlock::master_quarantined seen{};
    events_.wait_until(
        [&](const std::vector<redlock::event>& events)
        {
            const auto* found = find_event<redlock::master_quarantined>(events, master, since);
            if (found != nullptr)
            {
                seen = *found;
            }
            return found != nullptr;
        },
        fmt::format("master {} is put into quarantine", master));
    return seen;
}

void guarded_clients::wait_for_armed(std::size_t master, std::size_t since)
{
    events_.wait_until(
        [&](const std::vector<redlock::event>& events)
        { return find_event<redlock::master_armed>(events, master, since) != nullptr; },
        fmt::format("master {} is armed", master));
}

std::size_t guarded_clients::quarantines(std::size_t since) const
{
    const std::vector<redlock::event> events = events_.events();
    return static_cast<std::size_t>(std::count_if(
        events.begin() + static_cast<std::ptrdiff_t>(since), events.end(),
        [](const redlock::event& each)
        { return std::holds_alternative<redlock::master_quarantined>(each); }));
}

bool guarded_clients::is_armed(std::size_t master, std::size_t since) const
{
    return find_event<redlock::master_armed>(events_.events(), master, since) != nullptr;
}

bool guarded_clients::is_arming_refused(std::size_t master) const
{
    const std::vector<redlock::event> events = events_.events();
    return std::any_of(
        events.begin(), events.end(),
        [&](const redlock::event& each)
        {
            const auto* found = std::get_if<redlock::master_warning>(&each);
            return found != nullptr && found->index == master &&
                   found->what == redlock::risk::arming_refused && !found->detail.empty();
        });
}

redlock::lease
guarded_clients::win(std::size_t manager, const std::string& resource, std::chrono::milliseconds ttl)
{
    acquired got = acquire((*this)[manager], resource, {.ttl = ttl, .wait = patience});
    if (got.error)
    {
        throw std::runtime_error{got.report.to_string()};
    }
    return std::move(got.lease);
}

std::vector<std::string> contradictions(std::vector<holding> all)
{
    std::sort(
        all.begin(), all.end(), [](const holding& one, const holding& two) { return one.from < two.from; });
    std::vector<std::string> found;
    const holding* longest = nullptr; // Of those that have begun.
    std::uint64_t largest = 0;
    for (const holding& each : all)
    {
        if (each.until <= each.from)
        {
            continue; // Its client hasn't used it.
        }
        if (longest != nullptr && each.from < longest->until)
        {
            found.push_back(fmt::format("token {} was held during token {}", each.token, longest->token));
        }
        if (each.token <= largest)
        {
            found.push_back(fmt::format("token {} was issued after token {}", each.token, largest));
        }
        longest = longest == nullptr || each.until > longest->until ? &each : longest;
        largest = std::max(largest, each.token);
    }
    return found;
}

contest::contest(guarded_clients& clients, std::chrono::milliseconds ttl) : ttl_{ttl}
{
    for (std::size_t each = 0; each < clients.size(); ++each)
    {
        threads_.emplace_back([this, &locks = clients[each]] { take_part(locks); });
    }
}

contest::~contest()
{
    stop();
}

void contest::stop()
{
    {
        const std::lock_guard lock{mutex_};
        over_ = true;
    }
    for (std::thread& each : threads_)
    {
        each.join();
    }
    threads_.clear();
}

void contest::take_part(redlock::lock_manager& locks)
{
    try
    {
        for (std::size_t time = 0;; ++time)
        {
            {
                const std::lock_guard lock{mutex_};
                if (over_)
                {
                    return;
                }
            }
            acquired got = acquire(locks, "stock", {.ttl = ttl_, .wait = 500ms});
            if (got.error)
            {
                continue;
            }
            holding one{clock::now(), {}, got.lease.fencing_token().value()};
            // Every other one lasts, so that a second holder would begin during it.
            if (time % 2 == 0)
            {
                extend(got.lease, ttl_);
                std::this_thread::sleep_for(ttl_ * 3 / 4);
            }
            one.until = std::min(clock::now(), got.lease.valid_until());
            record(one);
            release(got.lease);
        }
    }
    catch (const std::exception& error)
    {
        const std::lock_guard lock{mutex_};
        failure_ = error.what();
        changed_.notify_all();
    }
}

void contest::record(const holding& one)
{
    const std::lock_guard lock{mutex_};
    all_.push_back(one);
    changed_.notify_all();
}

void contest::wait_for_holdings(std::size_t more)
{
    std::unique_lock lock{mutex_};
    const std::size_t wanted = all_.size() + more;
    if (!changed_.wait_for(lock, patience, [&] { return all_.size() >= wanted || !failure_.empty(); }))
    {
        throw stuck{"nobody acquires the resource"};
    }
}

std::vector<holding> contest::finish()
{
    stop();
    if (!failure_.empty())
    {
        throw std::runtime_error{failure_};
    }
    return all_;
}

} // namespace redlock::test
