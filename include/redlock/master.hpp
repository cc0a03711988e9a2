// SPDX-License-Identifier: BSL-1.0
// Addresses and credentials of masters, given as URLs or field by field.
#pragma once

#include <redlock/detail/export.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock
{

/// A password. It has no operators and no formatter, so it can't be printed or compared by accident.
class secret
{
  public:
    secret() = default;
    secret(std::string value) noexcept : value_{std::move(value)} {}
    secret(const char* value) : value_{value} {}

    bool empty() const noexcept { return value_.empty(); }
    /// Returns the password.
    const std::string& reveal() const noexcept { return value_; }

  private:
    std::string value_;
};

/// The address of a master over TCP.
struct tcp_address
{
    /// A host name, or an IPv4 or IPv6 address without brackets and zone. Names are resolved again at each connect.
    /// Must not be empty.
    std::string host;
    /// The port, 1 to 65535.
    std::uint16_t port = 6379;
    /// The ACL user, who must have a password. Empty: the default user.
    std::string username{};
    /// The password. Empty: none.
    secret password{};
    /// The index of the database, 0 or more.
    int database = 0;
    /// True: connect over TLS, with the options in `config::tls`.
    bool tls = false;
};

/// The address of a master over a Unix domain socket.
struct unix_address
{
    /// The absolute path of the socket, at most 107 bytes.
    std::string path;
    /// See `tcp_address::username`.
    std::string username{};
    /// See `tcp_address::password`.
    secret password{};
    /// See `tcp_address::database`.
    int database = 0;
};

/// The address and credentials of one of the N independent servers.
///
/// All constructors throw `system_error` with `errc::invalid_master` if the address is malformed. The message names the
/// offending part, and never contains the password.
class REDLOCK_API master
{
  public:
    /// Parses a URL of the form `redis://[[user]:password@]host[:port][/db]`, the same with `rediss://` for TLS, or
    /// `unix:///path[?db=n]`. User, password and path are percent-decoded.
    master(std::string_view url);
    master(const char* url);
    master(const std::string& url) : master{std::string_view{url}} {}
    master(tcp_address address);
    master(unix_address address);

    /// Returns the address without credentials, such as "redis://10.0.0.1:6379" or "unix:///run/redis.sock".
    const std::string& name() const noexcept { return name_; }
    bool is_unix() const noexcept { return port_ == 0; }
    bool is_tls() const noexcept { return tls_; }
    /// Returns the host, or the path of a Unix domain socket.
    const std::string& host() const noexcept { return host_; }
    /// Returns the port, or 0 for a Unix domain socket.
    std::uint16_t port() const noexcept { return port_; }
    const std::string& username() const noexcept { return username_; }
    const secret& password() const noexcept { return password_; }
    int database() const noexcept { return database_; }

  private:
    void check_and_name();

    std::string host_;
    std::uint16_t port_ = 0;
    std::string username_;
    secret password_;
    int database_ = 0;
    bool tls_ = false;
    std::string name_;
};

/// A vector of masters that can be made from a list, from a range, or from a comma-separated string.
///
/// ```cpp
/// redlock::master_list listed{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
/// redlock::master_list split = "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3";
/// ```
class master_list : public std::vector<master>
{
  public:
    using std::vector<master>::vector;

    /// Parses comma-separated URLs, the format of the command's REDLOCK_MASTERS variable, without the blanks around them. A
    /// comma in a password is written as `%2c`. A string in braces is one master instead. Throws `system_error` with
    /// `errc::invalid_master`, also for an empty entry.
    REDLOCK_API master_list(std::string_view urls);
    REDLOCK_API master_list(const char* urls);
    master_list(const std::string& urls) : master_list(std::string_view{urls}) {}

    /// Copies a range of masters, or of anything that a master can be made from, such as a `std::vector<std::string>`.
    template <std::ranges::input_range Range>
        requires std::constructible_from<master, std::ranges::range_reference_t<Range>> &&
                 (!std::convertible_to<Range, std::string_view>) &&
                 (!std::same_as<std::remove_cvref_t<Range>, master_list>)
    master_list(Range&& masters)
    {
        for (auto&& each : masters)
        {
            emplace_back(std::forward<decltype(each)>(each));
        }
    }
};

} // namespace redlock
