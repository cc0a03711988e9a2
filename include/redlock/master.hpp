// SPDX-License-Identifier: BSL-1.0
// Where a master is and how to log in to it: from a URL, or field by field.
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

/// A password. It can't be printed or compared by accident: there is no operator for it, and no formatter.
class secret
{
  public:
    secret() = default;
    secret(std::string value) noexcept : value_{std::move(value)} {}
    secret(const char* value) : value_{value} {}

    bool empty() const noexcept { return value_.empty(); }
    /// The password itself. Every call of this is a place where a reviewer looks.
    const std::string& reveal() const noexcept { return value_; }

  private:
    std::string value_;
};

/// A master over TCP, field by field.
struct tcp_address
{
    /// A name, which is resolved anew at each connect, or an IPv4 or IPv6 address (without brackets and zone). Not
    /// empty.
    std::string host;
    std::uint16_t port = 6379;
    /// For servers with ACLs; empty for the default user.
    std::string username{};
    /// Empty for none.
    secret password{};
    /// The database that is selected. 0 or more.
    int database = 0;
    /// Over TLS, as `config::tls` says.
    bool tls = false;
};

/// A master over a unix socket, field by field.
struct unix_address
{
    /// An absolute path of at most 107 bytes.
    std::string path;
    /// As in `tcp_address`.
    std::string username{};
    /// As in `tcp_address`.
    secret password{};
    /// As in `tcp_address`.
    int database = 0;
};

/// One of the N independent servers.
///
/// Every constructor throws `system_error` with `errc::invalid_master` for what can't be an address; its
/// message says what is wrong with which part, and never shows the password.
class REDLOCK_API master
{
  public:
    /// From `redis://[user[:password]@]host[:port][/db]`, `rediss://…` for the same over TLS, or
    /// `unix:///path[?db=n]`.
    /// User, password and path are percent-decoded.
    master(std::string_view url);
    master(const char* url) : master{std::string_view{url}} {}
    master(const std::string& url) : master{std::string_view{url}} {}
    master(tcp_address address);
    master(unix_address address);

    /// The address without user and password: "redis://10.0.0.1:6379", "unix:///run/redis.sock".
    const std::string& name() const noexcept { return name_; }
    bool is_unix() const noexcept { return port_ == 0; }
    bool is_tls() const noexcept { return tls_; }
    /// The host, or the path of a unix socket.
    const std::string& host() const noexcept { return host_; }
    /// 0 for a unix socket.
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

/// The masters of a manager, as a vector: from a list, from any range, or from one text with commas.
///
/// ```cpp
/// redlock::master_list listed{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
/// redlock::master_list split = "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3";
/// ```
class master_list : public std::vector<master>
{
  public:
    using std::vector<master>::vector;

    /// From one text of URLs that are separated by commas, as in the command's REDLOCK_MASTERS; not in braces, which hold
    /// one master each. `%2c` stands for a comma in a password. Throws `system_error` with `errc::invalid_master`.
    REDLOCK_API master_list(std::string_view urls);
    master_list(const char* urls) : master_list(std::string_view{urls}) {}
    master_list(const std::string& urls) : master_list(std::string_view{urls}) {}

    /// From a range of masters, or of what a master can be made from: a `std::vector<std::string>` for example.
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
