// SPDX-License-Identifier: BSL-1.0
// Any text as the address of a master: it is accepted with a name that leads to the same place, or refused in words
// that can be shown to anybody. Neither gives a password away.
// Input: 1 byte chooses what is made of the rest: the text as it is, or a URL with a password in it; 1 byte says how
// much of the rest stands in front of the password.
#include "support/fuzz_input.hpp"

#include <redlock/error.hpp>
#include <redlock/master.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

// No part of a scheme, a host or a message: where it is shown, it was given away.
constexpr std::string_view password = "S3same0pen";
constexpr std::size_t max_message_size = 1024;

void require_harmless(std::string_view shown)
{
    require(shown.find(password) == std::string_view::npos, "the password is shown");
    const bool printable =
        std::all_of(shown.begin(), shown.end(), [](char one) { return one >= ' ' && one <= '~'; });
    require(printable, "something is shown that isn't printable");
    require(shown.size() <= max_message_size, "something is shown that is very long");
}

/// Where a name leads is where the address led, without user and password.
void require_same_place(const master& left)
{
    try
    {
        const master right{left.name()};
        require(left.name() == right.name(), "a name has another name");
        require(left.host() == right.host() && left.port() == right.port(), "a name leads elsewhere");
        require(left.database() == right.database(), "a name leads to another database");
        const bool same_way = left.is_tls() == right.is_tls() && left.is_unix() == right.is_unix();
        require(same_way, "a name leads another way");
        require(right.username().empty() && right.password().empty(), "a name has a user or password in it");
    }
    catch (const system_error&)
    {
        fail("a name is no address");
    }
}

void try_url(const std::string& url, bool with_password)
{
    try
    {
        const master accepted{url};
        const bool taken = accepted.password().reveal().find(password) != std::string::npos ||
                           accepted.username().find(password) != std::string::npos;
        if (with_password && taken)
        {
            require_harmless(accepted.name());
        }
        require_same_place(accepted);
    }
    catch (const system_error& error)
    {
        require(error.code() == errc::invalid_master, "an address is refused with another error");
        require_harmless(error.what());
    }
}

/// The same address, field by field: the fields aren't parsed, but they are checked and shown.
void try_fields(std::string_view first, const std::string& second, std::uint16_t port)
{
    try
    {
        const master accepted{tcp_address{
            .host = second, .port = port, .username = std::string{first}, .password = std::string{password}}};
        require_harmless(accepted.name());
        require_same_place(accepted);
    }
    catch (const system_error& error)
    {
        require(error.code() == errc::invalid_master, "an address is refused with another error");
        require_harmless(error.what());
    }
    try
    {
        const master accepted{unix_address{.path = second, .password = std::string{password}}};
        require_harmless(accepted.name());
        require_same_place(accepted);
    }
    catch (const system_error& error)
    {
        require(error.code() == errc::invalid_master, "an address is refused with another error");
        require_harmless(error.what());
    }
}

} // namespace

} // namespace redlock::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redlock::test;
    fuzz_input input{{data, size}};
    const std::uint8_t form = input.byte();
    const std::string first = input.text(255);
    std::string rest;
    while (!input.empty())
    {
        rest += static_cast<char>(input.byte());
    }
    if ((first + rest).find(password) != std::string::npos)
    {
        return -1; // It would be shown where it is no password. Not worth keeping.
    }
    const std::string secret{password};
    switch (form % 8)
    {
    case 0: // Anything.
        try_url(first + rest, false);
        break;
    case 1: // A password where it belongs.
        try_url("redis://" + first + ":" + secret + "@" + rest, true);
        break;
    case 2:
        try_url("rediss://:" + secret + "@" + rest, true);
        break;
    case 3: // After a scheme that is wrong in any way.
        try_url(first + "://user:" + secret + "@" + rest, true);
        break;
    case 4: // With anything around it.
        try_url("redis://user:" + first + secret + "@" + rest, true);
        break;
    case 5: // With any delimiter after it.
        try_url("redis://" + first + ":" + secret + rest + "@10.0.0.1:6379/3", true);
        break;
    case 6: // Where no password may stand.
        try_url("unix://" + first + ":" + secret + "@" + rest, true);
        break;
    default:
        try_fields(first, rest, static_cast<std::uint16_t>(form << 8U | form));
        break;
    }
    return 0;
}
