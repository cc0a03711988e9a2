// SPDX-License-Identifier: BSL-1.0
// The address of a master: URLs, fields, names, and which ones are refused with which message.
#include "unit/refusal.hpp"

#include <redlock/error.hpp>
#include <redlock/master.hpp>
#include <redlock/options.hpp>

#include <catch2/catch_test_macros.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::string_literals;

struct good_url
{
    std::string_view url;
    std::string_view name;
    std::string_view host;
    std::uint16_t port;
    std::string_view username{};
    std::string_view password{};
    int database = 0;
    bool is_tls = false;
};

const std::vector<good_url> good_urls{
    {"rediss://10.0.0.1", "rediss://10.0.0.1:6379", "10.0.0.1", 6379, "", "", 0, true},
    {"REDISS://alice:sesame@[::1]:7/2", "rediss://[::1]:7/2", "::1", 7, "alice", "sesame", 2, true},
    {"redis://10.0.0.1", "redis://10.0.0.1:6379", "10.0.0.1", 6379},
    {"redis://10.0.0.1/", "redis://10.0.0.1:6379", "10.0.0.1", 6379},
    {"REDIS://Redis-1.example:1", "redis://Redis-1.example:1", "Redis-1.example", 1},
    {"redis://redis_1:65535/3", "redis://redis_1:65535/3", "redis_1", 65535, "", "", 3},
    {"redis://localhost/0", "redis://localhost:6379", "localhost", 6379},
    {"redis://localhost/2147483647", "redis://localhost:6379/2147483647", "localhost", 6379, "", "",
     2147483647},
    {"redis://[::1]", "redis://[::1]:6379", "::1", 6379},
    {"redis://[2001:db8::7]:7000/2", "redis://[2001:db8::7]:7000/2", "2001:db8::7", 7000, "", "", 2},
    {"redis://:sesame@10.0.0.1", "redis://10.0.0.1:6379", "10.0.0.1", 6379, "", "sesame"},
    {"redis://alice:sesame@10.0.0.1:7", "redis://10.0.0.1:7", "10.0.0.1", 7, "alice", "sesame"},
    {"redis://al%2fice:p%40ss%3Aw%25rd%00@h", "redis://h:6379", "h", 6379, "al/ice", {"p@ss:w%rd\0", 10}},
    {"redis://alice:a:b@h", "redis://h:6379", "h", 6379, "alice", "a:b"},
    {"redis://@h", "redis://h:6379", "h", 6379},
    {"redis://:@h", "redis://h:6379", "h", 6379},
    {"redis://h%2Dost", "redis://h-ost:6379", "h-ost", 6379},
    {"unix:///run/redis.sock", "unix:///run/redis.sock", "/run/redis.sock", 0},
    {"unix:///run/redis.sock?db=3", "unix:///run/redis.sock?db=3", "/run/redis.sock", 0, "", "", 3},
    {"unix:///run/redis.sock?db=0", "unix:///run/redis.sock", "/run/redis.sock", 0},
    {"UNIX:///a%20b%3fc%23@d", "unix:///a%20b%3Fc%23@d", "/a b?c#@d", 0},
};

/// A URL, and the part of the message that says what is wrong and what is expected.
struct bad_url
{
    std::string url;
    std::string why;
};

const std::vector<bad_url> bad_urls{
    {"", "it is empty; give redis://"},
    {std::string(65'537, 'x'), "longer than 65536 bytes"},
    {"10.0.0.1:6379", "it has no scheme; it must begin with redis://, rediss:// or unix://"},
    {"redis:10.0.0.1", "it has no scheme"},
    {"unix:/run/redis.sock", "it has no scheme"},
    {"://10.0.0.1", "its scheme '' is unknown"},
    {"http://10.0.0.1", "its scheme 'http' is unknown; it must begin with redis://, rediss:// or unix://"},
    {"redis ://h", "its scheme is unknown"},
    {"redis://h:1,redis://h:2", "it is a list; give each URL as a master of its own"},
    {"unix:///a, rediss://alice:sesame@h", "it is a list"},
    {"redis://", "its host is empty"},
    {"redis:///3", "its host is empty"},
    {"redis://:6379", "its host is empty"},
    {"redis://:sesame@", "its host is empty"},
    {"redis://:sesame@:6379", "its host is empty"},
    {"redis://h:0", "its port '0' isn't a number from 1 to 65535"},
    {"redis://h:65536", "its port '65536' isn't a number from 1 to 65535"},
    {"redis://h:4294973675", "its port isn't a number from 1 to 65535"},
    {"redis://h:", "its port '' isn't a number from 1 to 65535"},
    {"redis://h:-1", "its port isn't a number from 1 to 65535"},
    {"redis://h:http", "its port isn't a number from 1 to 65535"},
    {"redis://user:sesame", "its port isn't a number from 1 to 65535; a password must be followed by @"},
    {"redis://::1", "an IPv6 address must be in brackets"},
    {"redis://::1:6379", "an IPv6 address must be in brackets"},
    {"redis://[::1", "isn't an IPv6 address"},
    {"redis://[::1]6379", "isn't an IPv6 address in brackets and an optional port"},
    {"redis://[::1]:x", "isn't an IPv6 address in brackets and an optional port"},
    {"redis://[::g]", "isn't an IPv6 address"},
    {"redis://[v7.x]", "isn't an IPv6 address"},
    {"redis://[]", "isn't an IPv6 address"},
    {"redis://h/x", "its database 'x' isn't a number from 0 to 2147483647"},
    {"redis://h/-1", "its database '-1' isn't a number from 0 to 2147483647"},
    {"redis://h/+1", "its database '+1' isn't"},
    {"redis://h/2147483648", "its database '2147483648' isn't a number from 0 to 2147483647"},
    {"redis://h/3/", "its database '3/' isn't"},
    {"redis://h/3/4", "its database '3/4' isn't"},
    {"redis://h//", "its database '/' isn't"},
    {"redis://h?db=3", "the database is its path, as in redis://10.0.0.1/3"},
    {"redis://h/3?", "has no ? and no #"},
    {"redis://h/3#top", "has no ? and no #"},
    {"redis://a@b@h", "it contains more than one @; in a user or password, write @ as %40"},
    {"redis://:p/w@h", "there is an @ after its first /, ? or #"},
    {"redis://:p?w@h", "there is an @ after its first /, ? or #"},
    {"redis://:p#w@h", "there is an @ after its first /, ? or #"},
    {"redis://ho st", "a space, a control character or a character outside ASCII (byte 11)"},
    {"redis://h\r\n", "a space, a control character or a character outside ASCII (byte 10)"},
    {"redis://h\0"s, "a space, a control character or a character outside ASCII (byte 10)"},
    {"redis://h\x7f", "a space, a control character or a character outside ASCII (byte 10)"},
    {"redis://gr\xc3\xbcn", "a space, a control character or a character outside ASCII (byte 11)"},
    {"redis://h%", "a % isn't followed by two hexadecimal digits (byte 10)"},
    {"redis://h%4", "a % isn't followed by two hexadecimal digits (byte 10)"},
    {"redis://:a%zz@h", "a % isn't followed by two hexadecimal digits (byte 11)"},
    {"redis://ho\"st", "a character that must be percent-encoded"},
    {"redis://:p<w@h", "a character that must be percent-encoded"},
    {"redis://h%00", "can't be used: it must consist of letters, digits and -._"},
    {"redis://ho%20st", "can't be used: it must consist of letters, digits and -._"},
    {"redis://a,b", "host 'a,b' can't be used: it must consist of letters, digits and -._"},
    {"redis://" + std::string(254, 'h'), "host of 254 bytes can't be used: it must have 1 to 253"},
    {"redis://alice@h", "it has a user without a password"},
    {"redis://alice:@h", "it has a user without a password"},
    {"redis://al%20ice:x@h", "its user contains a space or a NUL byte"},
    {"redis://al%00ice:x@h", "its user contains a space or a NUL byte"},
    {"unix://", "path '' can't be used: it must be the absolute path of a socket"},
    {"unix:///", "path '/' can't be used: it must be the absolute path of a socket"},
    {"unix:///run/", "path '/run/' can't be used: it must be the absolute path of a socket"},
    {"unix://run/redis.sock", "a unix:// URL has no host; an absolute path follows"},
    {"unix://:1/redis.sock", "a unix:// URL has no host"},
    {"unix://alice:sesame@/run/redis.sock", "a unix:// URL has no user and password"},
    {"unix:///run/redis.sock#x", "a unix:// URL has no #"},
    {"unix:///run/redis.sock?", "its query isn't db=n"},
    {"unix:///run/redis.sock?db", "its query isn't db=n"},
    {"unix:///run/redis.sock?db=1&db=2", "its query isn't db=n"},
    {"unix:///run/redis.sock?password=sesame", "its query isn't db=n"},
    {"unix:///run/redis.sock?db=", "its database '' isn't a number from 0 to 2147483647"},
    {"unix:///run/redis.sock?db=-3", "its database '-3' isn't a number from 0 to 2147483647"},
    {"unix:///run/a%00b", "it contains a NUL byte"},
    {"unix:///" + std::string(107, 'p'),
     "path of 108 bytes can't be used: a unix socket's path has 2 to 107"},
};

} // namespace

TEST_CASE("valid URLs are parsed into their parts")
{
    for (const good_url& expected : good_urls)
    {
        CAPTURE(expected.url);
        const master read{expected.url};
        CHECK(read.name() == expected.name);
        CHECK(read.host() == expected.host);
        CHECK(read.port() == expected.port);
        CHECK(read.is_unix() == (expected.port == 0));
        CHECK(read.is_tls() == expected.is_tls);
        CHECK(read.username() == expected.username);
        CHECK(read.password().reveal() == expected.password);
        CHECK(read.database() == expected.database);
    }
}

TEST_CASE("a name is a URL of the same address")
{
    for (const good_url& expected : good_urls)
    {
        const master first{expected.url};
        const master again{first.name()};
        CAPTURE(expected.url, first.name());
        CHECK(again.name() == first.name());
        CHECK(again.host() == first.host());
        CHECK(again.port() == first.port());
        CHECK(again.is_tls() == first.is_tls());
        CHECK(again.database() == first.database());
    }
}

TEST_CASE("a malformed URL is refused with the part that is wrong, and why")
{
    for (const bad_url& bad : bad_urls)
    {
        CAPTURE(bad.url.substr(0, 100));
        const std::string text = refusal_of(bad.url);
        INFO(text);
        CHECK(text.find("can't be used: ") != std::string::npos);
        CHECK(text.find(bad.why) != std::string::npos);
        CHECK(text.size() < 600);
    }
}

TEST_CASE("a null pointer is refused where it is given")
{
    const char* const unset = nullptr;
    CHECK(refusal_of(unset).find("it is a null pointer") != std::string::npos);
    try
    {
        const master_list all(unset);
        FAIL("accepted as " << all.size() << " masters");
    }
    catch (const system_error& error)
    {
        CHECK(error.code() == errc::invalid_master);
        CHECK(std::string{error.what()}.find("variable that isn't set") != std::string::npos);
    }
    CHECK(resource_name{unset}.value().empty()); // Which the operations refuse.
}

TEST_CASE("a refused URL is shown without user, password and query")
{
    CHECK(refusal_of("redis://alice:sesame@10.0.0.1:7/x")
              .starts_with("the master URL redis://***@10.0.0.1:7/x can't"));
    CHECK(refusal_of("redis://10.0.0.1:0").starts_with("the master URL redis://10.0.0.1:0 can't"));
    CHECK(refusal_of("redis://[::1]:0/3").starts_with("the master URL redis://[::1]:0/3 can't"));
    CHECK(refusal_of("redis://alice:ses/ame@10.0.0.1").starts_with("the master URL redis://... can't"));
    CHECK(refusal_of("redis://alice:sesame").starts_with("the master URL redis://... can't"));
    CHECK(refusal_of("redis://:123456").starts_with("the master URL redis://... can't"));
    CHECK(refusal_of("unix:///run/a?password=sesame").starts_with("the master URL unix:///run/a can't"));
    CHECK(refusal_of("alice:sesame@10.0.0.1").starts_with("a master's URL can't"));
    CHECK(refusal_of("alice:sesame://10.0.0.1").starts_with("a master's URL can't"));
}

TEST_CASE("unprintable characters of a URL are kept out of the message", "[scenario-51]")
{
    for (const std::string& url :
         {"redis://h\r\nINFO x"s, "redis://h\0x"s, "unix:///run/\r\n"s, "unix:///run/\x1b[2J"s,
          "re\ndis://h"s, "redis://h%0d%0a"s, "unix:///run/%0d%0a/"s, "unix:///run/x%00"s, "redis://h/3\n4"s})
    {
        const std::string text = refusal_of(url);
        INFO(text);
        for (const char one : text)
        {
            CHECK((one >= ' ' && one <= '~'));
        }
    }
}

TEST_CASE("a name contains no line end, whatever the path", "[scenario-51]")
{
    const master odd{unix_address{.path = "/run/a\r\n\x1b b%?#\xff"}};
    CHECK(odd.name() == "unix:///run/a%0D%0A%1B%20b%25%3F%23%FF");
    CHECK(master{odd.name()}.host() == odd.host());
}

TEST_CASE("a name isn't a list, whatever the path")
{
    const master odd{unix_address{.path = "/run/a,redis://b"}};
    CHECK(odd.name() == "unix:///run/a%2Credis://b");
    CHECK(master{odd.name()}.host() == odd.host());
}

TEST_CASE("addresses given field by field are taken unchanged")
{
    const master tcp{
        tcp_address{.host = "fe80::1", .port = 7, .username = "alice", .password = "p@ss"s, .database = 2}};
    CHECK(tcp.name() == "redis://[fe80::1]:7/2");
    CHECK(tcp.host() == "fe80::1");
    CHECK(tcp.username() == "alice");
    CHECK(tcp.password().reveal() == "p@ss");
    CHECK_FALSE(tcp.is_unix());
    CHECK(master{tcp_address{.host = "h"}}.port() == 6379);
    CHECK(master{tcp_address{.host = std::string(253, 'h')}}.host().size() == 253);

    const std::string longest = "/" + std::string(106, 'p');
    const master local{unix_address{.path = longest, .password = "sesame", .database = 1}};
    CHECK(local.name() == "unix://" + longest + "?db=1");
    CHECK(local.host() == longest);
    CHECK(local.port() == 0);
    CHECK(local.is_unix());
    CHECK(local.password().reveal() == "sesame");
}

TEST_CASE("each invalid field is refused with its own message")
{
    const auto has = [](const std::string& text, std::string_view part)
    {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    has(refusal_of(tcp_address{.host = ""}), "host is empty");
    has(refusal_of(tcp_address{.host = "h", .port = 0}), "port 0 can't be used: it must be from 1 to 65535");
    has(refusal_of(tcp_address{.host = "[::1]"}), "an IPv6 address without brackets");
    has(refusal_of(tcp_address{.host = "10.0.0.1:6379"}), "port, user and password are separate fields");
    has(refusal_of(tcp_address{.host = "a:b:c"}), "be an IPv6 address without brackets");
    // A zone identifies an interface of this machine and can't be written in a URL, so the name would be invalid.
    has(refusal_of(tcp_address{.host = "fe80::1%eth0"}), "an IPv6 address without brackets and zone");
    has(refusal_of(tcp_address{.host = "h%eth0"}), "host 'h%eth0' can't be used");
    has(refusal_of(tcp_address{.host = "h\0"s}), "host 'h\\x00' can't be used");
    has(refusal_of(tcp_address{.host = "h", .database = -1}),
        "database -1 can't be used: it must be from 0 to 2147483647");
    has(refusal_of(tcp_address{.host = "h", .username = "alice"}),
        "redis://h:6379 can't be used: it has a user without");
    has(refusal_of(unix_address{.path = ""}), "must be the absolute path of a socket");
    has(refusal_of(unix_address{.path = "run/redis.sock"}),
        "path 'run/redis.sock' can't be used: it must be the abs");
    has(refusal_of(unix_address{.path = "/a\0b"s}), "it contains a NUL byte");
    has(refusal_of(unix_address{.path = "/" + std::string(107, 'p')}), "path of 108 bytes");
    has(refusal_of(unix_address{.path = "/a", .username = "alice"}),
        "unix:///a can't be used: it has a user without");
    has(refusal_of(unix_address{.path = "/a", .database = -7}), "database -7 can't be used");
}

} // namespace redlock::test
