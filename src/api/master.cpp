// SPDX-License-Identifier: BSL-1.0
// The address of a master: its check, and its name, which contains neither user nor password.
#include <redlock/master.hpp>

#include "api/address_text.hpp"
#include "api/master_url.hpp"

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/url/ipv6_address.hpp>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace redlock
{

namespace
{

using api::consists_of;
using api::in_quotes;
using api::letters;
using api::refuse_master;

constexpr std::size_t max_host_size = 253; // The limit of DNS names.
constexpr std::size_t max_path_size = 107; // The limit of sockaddr_un, without the final NUL.
constexpr std::size_t npos = std::string_view::npos;

void check_host(const std::string& host)
{
    if (host.empty())
    {
        refuse_master("a master's host is empty: give a name or an address");
    }
    if (host.size() > max_host_size)
    {
        refuse_master(
            "a master's host of " + std::to_string(host.size()) + " bytes can't be used: it must have 1 to " +
            std::to_string(max_host_size));
    }
    if (!consists_of(host, letters, "-._") && !boost::urls::parse_ipv6_address(host))
    {
        refuse_master(
            "a master's host " + in_quotes(host) +
            "can't be used: it must consist of letters, digits and -._, or be an IPv6 address without "
            "brackets and zone; port, user and password are separate fields");
    }
}

void check_path(const std::string& path)
{
    if (!path.starts_with('/') || path.ends_with('/'))
    {
        refuse_master(
            "a master's path " + in_quotes(path) +
            "can't be used: it must be the absolute path of a socket, such as /run/redis.sock");
    }
    if (path.size() > max_path_size)
    {
        refuse_master(
            "a master's path of " + std::to_string(path.size()) +
            " bytes can't be used: a unix socket's path has 2 to " + std::to_string(max_path_size));
    }
    if (path.find('\0') != npos)
    {
        refuse_master("a master's path " + in_quotes(path) + "can't be used: it contains a NUL byte");
    }
}

/// Returns the path in percent-encoding, so that the name is a URL of the same socket. A comma would make it a list of two.
std::string encoded_path(std::string_view path)
{
    std::string result;
    for (const char one : path)
    {
        if (consists_of({&one, 1}, letters, "/-._~@:!$&'()*+;="))
        {
            result += one;
        }
        else
        {
            constexpr std::string_view upper = "0123456789ABCDEF";
            const auto byte = static_cast<unsigned char>(one);
            result += {'%', upper[byte >> 4], upper[byte & 0x0f]};
        }
    }
    return result;
}

std::string_view checked(const char* text, const char* complaint)
{
    if (text == nullptr)
    {
        refuse_master(complaint);
    }
    return text;
}

} // namespace

master::master(const char* url) : master{checked(url, "a master's URL can't be used: it is a null pointer")}
{
}

master::master(std::string_view url)
{
    const auto address = api::read_master_url(url);
    *this = std::visit([](const auto& one) { return master{one}; }, address);
}

master::master(tcp_address address)
    : host_{std::move(address.host)},
      port_{address.port},
      username_{std::move(address.username)},
      password_{std::move(address.password)},
      database_{address.database},
      tls_{address.tls}
{
    if (port_ == 0)
    {
        refuse_master("a master's port 0 can't be used: it must be from 1 to 65535");
    }
    check_and_name();
}

master::master(unix_address address)
    : host_{std::move(address.path)},
      username_{std::move(address.username)},
      password_{std::move(address.password)},
      database_{address.database}
{
    check_and_name();
}

void master::check_and_name()
{
    is_unix() ? check_path(host_) : check_host(host_);
    const std::string database = std::to_string(database_);
    if (is_unix())
    {
        name_ = "unix://" + encoded_path(host_) + (database_ == 0 ? "" : "?db=" + database);
    }
    else
    {
        const bool ipv6 = host_.find(':') != npos;
        name_ = (tls_ ? "rediss://" : "redis://") + (ipv6 ? "[" + host_ + "]" : host_) + ":" +
                std::to_string(port_) + (database_ == 0 ? "" : "/" + database);
    }
    if (database_ < 0)
    {
        refuse_master("a master's database " + database + " can't be used: it must be from 0 to 2147483647");
    }
    if (!username_.empty() && password_.empty())
    {
        refuse_master(
            "the master " + name_ +
            " can't be used: it has a user without a password; give both, or neither");
    }
    if (username_.find_first_of(std::string_view{"\0 ", 2}) != npos)
    {
        refuse_master(
            "the master " + name_ +
            " can't be used: its user contains a space or a NUL byte, which no server accepts");
    }
}

master_list::master_list(const char* urls)
    : master_list(checked(
          urls, "the list of masters can't be used: it is a null pointer, as std::getenv returns for a "
                "variable that isn't set"))
{
}

master_list::master_list(std::string_view urls)
{
    std::vector<std::string> entries;
    boost::algorithm::split(entries, urls, boost::algorithm::is_any_of(","));
    for (std::string& each : entries)
    {
        boost::algorithm::trim_if(each, boost::algorithm::is_any_of(" \t\r\n"));
        if (each.empty() && entries.size() > 1)
        {
            refuse_master(
                "the list of masters can't be used: entry " + std::to_string(size() + 1) + " of " +
                std::to_string(entries.size()) +
                " is empty, perhaps a variable that isn't set: give the URL of a master, or omit its comma");
        }
        emplace_back(each);
    }
}

} // namespace redlock
