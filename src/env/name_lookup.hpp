// SPDX-License-Identifier: BSL-1.0
// Resolves a host name on a detached thread, so that a name that hangs delays nothing else.
#pragma once

#include <redlock/error.hpp>

#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace redlock::env
{

/// One call of `getaddrinfo`, shared by the connectors that want its result. docs/decisions/0015.
///
/// The thread refers to nothing but this. It can't be interrupted: a connector that no longer wants the result forgets
/// it, and a later one for the same name joins it as long as it hangs.
class name_lookup
{
  public:
    /// As many names are looked up at once in a process. A further one is refused until one of them has ended.
    static constexpr std::size_t max_in_progress = 64;
    /// A name has no more addresses for us; the rest is ignored.
    static constexpr std::size_t max_addresses = 16;

    struct result
    {
        error_code error;
        std::vector<boost::asio::ip::address> addresses;
    };

    /// The lookup of this name that is in progress, or a new one. Null, with the reason in `why`, if the process has
    /// `max_in_progress` of them, or gets no thread or descriptor. Thread-safe.
    static std::shared_ptr<name_lookup> join(const std::string& name, error_code& why);

    name_lookup(const name_lookup&) = delete;
    name_lookup& operator=(const name_lookup&) = delete;
    ~name_lookup();

    /// A new descriptor, owned by the caller, that becomes readable when the result is there, and stays so. -1 if the
    /// process has too many.
    int watch() const noexcept;
    /// The addresses, in the system's order. Call it once the descriptor is readable. Thread-safe.
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

} // namespace redlock::env
