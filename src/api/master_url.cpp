// SPDX-License-Identifier: BSL-1.0
// Parses the URL of a master. Boost.URL implements the grammar; this file describes errors, without revealing a
// password.
#include "api/master_url.hpp"

#include "api/address_text.hpp"

#include <boost/url/authority_view.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <charconv>
#include <cstdint>
#include <optional>

namespace redlock::api
{

namespace
{

namespace urls = boost::urls;

constexpr std::size_t max_url_size = 64 * 1024;
constexpr std::size_t not_found = std::string_view::npos;
constexpr std::string_view after_host = "/?#";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";

std::string lower_case(std::string_view text)
{
    std::string result{text};
    for (char& one : result)
    {
        one = one >= 'A' && one <= 'Z' ? static_cast<char>(one - 'A' + 'a') : one;
    }
    return result;
}

/// Returns whether `text` is a host with an optional port, and not possibly a user and a password without a host.
bool is_host_and_port(std::string_view text) noexcept
{
    const std::size_t end_of_host = text.starts_with('[') ? text.find(']') : text.find(':');
    if (end_of_host == not_found)
    {
        return !text.starts_with('[');
    }
    const std::size_t colon = text.find(':', end_of_host);
    const std::string_view port = colon == not_found ? std::string_view{} : text.substr(colon + 1);
    return consists_of(port, digits) && port.size() <= 5;
}

/// Returns the part of a URL that a message may show: nothing that could belong to a user or password, and no query. If
/// that can't be distinguished, only the scheme.
std::string shown(std::string_view url)
{
    const std::size_t scheme = url.find("://");
    if (scheme == not_found || !consists_of(url.substr(0, scheme), letters, "+-."))
    {
        return {};
    }
    const std::string_view rest = url.substr(scheme + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of(after_host));
    const std::string_view behind = rest.substr(authority.size());
    const std::size_t at = authority.rfind('@');
    const std::string_view place = at == not_found ? authority : authority.substr(at + 1);
    if (behind.find('@') != not_found || !is_host_and_port(place))
    {
        return printable(url.substr(0, scheme)) + "://...";
    }
    const std::string_view path = behind.substr(0, behind.find_first_of("?#"));
    return printable(url.substr(0, scheme)) + (at == not_found ? "://" : "://***@") + printable(place) +
           printable(path);
}

[[noreturn]] void refuse(std::string_view url, const std::string& why)
{
    const std::string place = shown(url);
    refuse_master((place.empty() ? "a master's URL" : "the master URL " + place) + " can't be used: " + why);
}

enum class scheme : std::uint8_t
{
    tcp,        // redis://
    tls,        // rediss://
    unix_socket // unix://
};

scheme scheme_of(std::string_view url)
{
    if (url.empty())
    {
        refuse(url, "it is empty; give redis://host[:port][/db] or unix:///path[?db=n]");
    }
    if (url.size() > max_url_size)
    {
        refuse(url, "it is longer than " + std::to_string(max_url_size) + " bytes");
    }
    const std::size_t end = url.find("://");
    if (end == not_found)
    {
        refuse(url, "it has no scheme; it must begin with redis://, rediss:// or unix://");
    }
    const std::string name = lower_case(url.substr(0, end));
    if (name != "redis" && name != "rediss" && name != "unix")
    {
        const std::string which =
            consists_of(name, letters, "+-.") ? "its scheme " + in_quotes(name) : "its scheme ";
        refuse(url, which + "is unknown; it must begin with redis://, rediss:// or unix://");
    }
    if (name == "unix")
    {
        return scheme::unix_socket;
    }
    return name == "redis" ? scheme::tcp : scheme::tls;
}

/// Refuses characters that can't occur in any part of a URL.
void check_characters(std::string_view url)
{
    for (std::size_t at = 0; at < url.size(); ++at)
    {
        const auto byte = static_cast<unsigned char>(url[at]);
        const std::string where = " (byte " + std::to_string(at + 1) + ")";
        if (byte <= 0x20 || byte >= 0x7f)
        {
            refuse(
                url, "it contains a space, a control character or a character outside ASCII" + where +
                         "; write such a byte as % and two hexadecimal digits");
        }
        const bool encodes = url.size() - at > 2 && consists_of(url.substr(at + 1, 2), hex_digits);
        if (byte == '%' && !encodes)
        {
            refuse(url, "a % isn't followed by two hexadecimal digits" + where + "; write % itself as %25");
        }
    }
}

/// Describes why Boost.URL rejects a URL.
std::string grammar_complaint(std::string_view authority)
{
    if (std::count(authority.begin(), authority.end(), '@') > 1)
    {
        return "it contains more than one @; in a user or password, write @ as %40";
    }
    const std::string_view place = authority.substr(authority.find('@') + 1);
    if (place.starts_with('['))
    {
        return "its host isn't an IPv6 address in brackets and an optional port, as in redis://[::1]:6379";
    }
    if (std::count(place.begin(), place.end(), ':') > 1)
    {
        return "its host contains a colon; an IPv6 address must be in brackets, as in redis://[::1]:6379";
    }
    const std::size_t colon = place.find(':');
    if (colon != not_found && !consists_of(place.substr(colon + 1), digits))
    {
        return "its port isn't a number from 1 to 65535; a password must be followed by @ and the host";
    }
    return "it contains a character that must be percent-encoded: all except letters, digits and "
           "-._~!$&'()*+,;=";
}

urls::url_view parse(std::string_view url)
{
    check_characters(url);
    const std::string_view rest = url.substr(url.find("://") + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of(after_host));
    const auto parsed = urls::parse_uri(url);
    // Boost 1.81 parses the invalid part of an authority as the path: "h:x" as host h and path x.
    if (!parsed || !urls::parse_authority(authority))
    {
        refuse(url, grammar_complaint(authority));
    }
    return *parsed;
}

template <class BoostView>
std::string_view view(const BoostView& text) noexcept
{
    return {text.data(), text.size()};
}

/// Parses a decimal number without a sign. Returns nothing if it exceeds the range of the type.
template <class Number>
std::optional<Number> number(std::string_view text) noexcept
{
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc{} && stop == end && consists_of(text, digits);
    return good ? std::optional{value} : std::nullopt;
}

std::uint16_t port_of(std::string_view url, const urls::url_view& parsed)
{
    if (!parsed.has_port())
    {
        return tcp_address{}.port;
    }
    const std::string_view text = view(parsed.port());
    const auto port = number<std::uint16_t>(text);
    if (!port || *port == 0)
    {
        // A longer number may be a password without a host, so it isn't shown.
        const std::string which = text.size() <= 5 ? in_quotes(text) : std::string{};
        refuse(url, "its port " + which + "isn't a number from 1 to 65535");
    }
    return *port;
}

int database_of(std::string_view url, std::string_view text)
{
    const auto database = number<int>(text);
    if (!database)
    {
        refuse(url, "its database " + in_quotes(text) + "isn't a number from 0 to 2147483647");
    }
    return *database;
}

/// Returns whether a second URL follows a comma.
bool is_list(std::string_view url) noexcept
{
    const std::size_t comma = url.find(',');
    return comma != not_found && url.find("://", comma) != not_found;
}

tcp_address read_redis(std::string_view url)
{
    const std::string_view rest = url.substr(url.find("://") + 3);
    const std::size_t end_of_authority = rest.find_first_of(after_host);
    if (end_of_authority != not_found && rest.find('@', end_of_authority) != not_found)
    {
        refuse(
            url, "there is an @ after its first /, ? or #; in a user or password, write these as "
                 "%40, %2F, %3F and %23");
    }
    const urls::url_view parsed = parse(url);
    if (parsed.host_type() == urls::host_type::ipvfuture)
    {
        refuse(url, "the host in brackets isn't an IPv6 address, as in redis://[::1]:6379");
    }
    tcp_address address{.host = parsed.host_address()};
    if (address.host.empty())
    {
        refuse(url, "its host is empty; give a name or an address, as in redis://10.0.0.1:6379");
    }
    address.port = port_of(url, parsed);
    address.username = parsed.user();
    address.password = secret{parsed.password()};
    if (parsed.has_query() || parsed.has_fragment())
    {
        refuse(url, "a redis:// URL has no ? and no #; the database is its path, as in redis://10.0.0.1/3");
    }
    const std::string_view path = view(parsed.encoded_path());
    if (path.size() > 1)
    {
        address.database = database_of(url, path.substr(1));
    }
    return address;
}

unix_address read_unix(std::string_view url)
{
    const urls::url_view parsed = parse(url);
    if (parsed.has_userinfo())
    {
        refuse(url, "a unix:// URL has no user and password; set them in a redlock::unix_address");
    }
    if (!view(parsed.encoded_host()).empty() || parsed.has_port())
    {
        refuse(url, "a unix:// URL has no host; an absolute path follows, as in unix:///run/redis.sock");
    }
    if (parsed.has_fragment())
    {
        refuse(url, "a unix:// URL has no #; in a path, write # as %23");
    }
    unix_address address{.path = parsed.path()};
    if (parsed.has_query())
    {
        const std::string_view query = view(parsed.encoded_query());
        if (!query.starts_with("db=") || query.find('&') != not_found)
        {
            refuse(url, "its query isn't db=n, as in unix:///run/redis.sock?db=3");
        }
        address.database = database_of(url, query.substr(3));
    }
    return address;
}

} // namespace

std::variant<tcp_address, unix_address> read_master_url(std::string_view url)
{
    const scheme kind = scheme_of(url);
    if (is_list(url))
    {
        refuse(url, "it is a list; give each URL as a master of its own");
    }
    if (kind == scheme::unix_socket)
    {
        return read_unix(url);
    }
    tcp_address address = read_redis(url);
    address.tls = kind == scheme::tls;
    return address;
}

} // namespace redlock::api
