// SPDX-License-Identifier: BSL-1.0
// Real servers and clients whose reports are compared with the wire: each vote, reason and detail, in the reports of
// operations and in those of events, must be what that server answered.
#pragma once

#include "integration/fixture.hpp"
#include "support/exchange_reader.hpp"
#include "support/proxy.hpp"
#include "support/report_check.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace redlock::test
{

/// The servers, and what they answered. Thread-safe, apart from the servers.
class wire_watch
{
  public:
    /// Starts the servers: over TCP without TLS, so that their replies can be read on the way.
    explicit wire_watch(std::size_t masters) : servers_{start_servers(masters, server_options::plain())} {}

    std::vector<server>& servers() { return servers_; }

    /// Records what a master answered to a client.
    void record(std::size_t master, int client, const exchange& answered);
    /// Checks a report of an event.
    void decided(int client, const round_decided& round);
    /// Checks the report of an operation that began at `since`. `owner_id`: empty for an acquire that has failed.
    void ended(
        int client, clock::time_point since, const std::string& resource, const std::string& owner_id,
        const report& told);
    void inspected(int client, clock::time_point since, const std::string& resource, const inspection& seen);
    /// Records that something contradicts the wire.
    void contradict(std::string what);

    /// Returns all contradictions.
    std::vector<std::string> contradictions() const;
    /// Returns how many votes with this reason have been checked.
    std::size_t seen(operation what, vote value, error_code reason = {}) const;
    /// Returns how many rounds the observers were notified of.
    std::size_t rounds() const;
    /// Returns how many slot requests were answered.
    std::size_t questions() const;

  private:
    void check(const std::optional<std::string>& contradiction, const report& told);

    std::vector<server> servers_;
    mutable std::mutex mutex_;
    report_check reports_;
    std::vector<std::string> contradictions_;
    std::map<std::tuple<operation, vote, error_code>, std::size_t> seen_;
    std::size_t rounds_ = 0;
    std::size_t questions_ = 0;
};

/// A client with its own proxy to each server. Each result and each event is checked.
class watched_client
{
  public:
    /// `number` identifies the client. The watch must outlive it.
    watched_client(
        wire_watch& watch, int number, std::chrono::milliseconds node_timeout = std::chrono::seconds{20});
    watched_client(const watched_client&) = delete;
    watched_client& operator=(const watched_client&) = delete;

    redlock::lock_manager& locks() { return *locks_; }
    event_log& events() { return events_; }
    proxy& way_to(std::size_t master) { return *proxies_.at(master); }
    /// Waits until every master is up. Throws `stuck`.
    void wait_for_masters();

    // Each blocks the calling thread until the operation ends. Throws `stuck`.
    acquired acquire(const std::string& resource, acquire_options options);
    acquired try_acquire(const std::string& resource);
    /// The same, with a function that is called once each of these masters was sent the command.
    acquired try_acquire(
        const std::string& resource, const std::vector<std::size_t>& masters,
        const std::function<void()>& when_sent);
    finished extend(redlock::lease& held);
    finished release(redlock::lease& held);
    inspection inspect(const std::string& resource);

  private:
    acquired checked(clock::time_point since, const std::string& resource, acquired result);

    wire_watch& watch_;
    int number_;
    std::vector<std::unique_ptr<proxy>> proxies_;
    event_log events_{log_of::masters};
    event_loop loop_;
    std::optional<redlock::lock_manager> locks_;
};

} // namespace redlock::test
