// SPDX-License-Identifier: BSL-1.0
// Resolves a host name on a detached thread, so that a lookup that hangs delays nothing else.
#pragma once

#include <redlock/error.hpp>

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace redlock::io
{

/// One call of `getaddrinfo`, shared by the connectors that wait for its result. See docs/decisions/0015.
///
/// Its thread refers to this object and to the list of lookups only. The call can't be interrupted: a connector that gives up
/// abandons the lookup, and a later connector for the same name joins it. One that may hang for ever is not joined: it is
/// followed by another one after 30 s, 30 s, 1 min, 2 min, 4 min and so on.
class name_lookup
{
  public:
    using time_point = std::chrono::steady_clock::time_point;

    /// The maximum number of concurrent lookups in a process that are not older than `patience`. Further ones are refused
    /// until one of them has ended.
    static constexpr std::size_t max_in_progress = 64;
    /// The maximum number of all concurrent lookups. The last `max_in_progress` are for names that have none.
    static constexpr std::size_t max_threads = 4 * max_in_progress;
    /// How old a lookup is that may hang for ever.
    static constexpr std::chrono::seconds patience{30};
    /// The addresses from a lookup that took so long that connectors have given up are used for another 10 s, or as long as it
    /// took.
    static constexpr std::chrono::seconds slow{1};
    static constexpr std::chrono::seconds kept_for{10};
    /// The maximum number of addresses of a name. Further ones are ignored.
    static constexpr std::size_t max_addresses = 16;

    struct result
    {
        error_code error;
        std::vector<boost::asio::ip::address> addresses;
    };

    /// Joins the lookup of this name that is in progress, or a slow one that has just succeeded, or starts one. Returns
    /// null, with the reason in `why`, if too many lookups are in progress, or no thread or descriptor is available.
    /// Thread-safe.
    static std::shared_ptr<name_lookup>
    join(const std::string& name, error_code& why, time_point now = std::chrono::steady_clock::now());

    name_lookup(const name_lookup&) = delete;
    name_lookup& operator=(const name_lookup&) = delete;
    ~name_lookup();

    /// Returns a new descriptor, owned by the caller, that becomes readable when the result is available, and stays
    /// readable. Returns -1 if no descriptor is available.
    int watch() const noexcept;
    /// Returns the addresses, in the order of the system. To be called once the descriptor is readable. Thread-safe.
    result get() const;

  private:
    struct registry;

    name_lookup(const std::string& name, time_point began);
    static void start(std::shared_ptr<name_lookup> lookup);
    void resolve() noexcept;
    void finish(int failed, int system_error, std::vector<boost::asio::ip::address> found) noexcept;

    const std::string name_;
    const time_point began_;
    time_point ended_{};   // Guarded by the mutex of the registry.
    const int done_event_; // An eventfd: written once, never read.
    mutable std::mutex mutex_;
    bool done_ = false;
    int failed_ = 0; // As getaddrinfo returned it.
    int system_error_ = 0;
    std::vector<boost::asio::ip::address> addresses_;
};

} // namespace redlock::io
