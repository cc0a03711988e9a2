// SPDX-License-Identifier: BSL-1.0
// Resolves a host name on a detached thread, so that a lookup that hangs delays nothing else.
#pragma once

#include <redlock/error.hpp>

#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace redlock::io
{

/// One call of `getaddrinfo`, shared by the connectors that wait for its result. See docs/decisions/0015.
///
/// Its thread refers to this object only. The call can't be interrupted: a connector that gives up abandons the lookup,
/// and a later connector for the same name joins the lookup if it still hangs.
class name_lookup
{
  public:
    /// The maximum number of concurrent lookups in a process. Further ones are refused until one of them has ended.
    static constexpr std::size_t max_in_progress = 64;
    /// The maximum number of addresses of a name. Further ones are ignored.
    static constexpr std::size_t max_addresses = 16;

    struct result
    {
        error_code error;
        std::vector<boost::asio::ip::address> addresses;
    };

    /// Joins the lookup of this name that is in progress, or starts one. Returns null, with the reason in `why`, if
    /// `max_in_progress` lookups are in progress, or no thread or descriptor is available. Thread-safe.
    static std::shared_ptr<name_lookup> join(const std::string& name, error_code& why);

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

    explicit name_lookup(const std::string& name);
    static void start(std::shared_ptr<name_lookup> lookup);
    void resolve() noexcept;
    void finish(int failed, int system_error, std::vector<boost::asio::ip::address> found) noexcept;

    const std::string name_;
    const int done_event_; // An eventfd: written once, never read.
    mutable std::mutex mutex_;
    bool done_ = false;
    int failed_ = 0; // As getaddrinfo returned it.
    int system_error_ = 0;
    std::vector<boost::asio::ip::address> addresses_;
};

} // namespace redlock::io
