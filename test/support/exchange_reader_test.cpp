// SPDX-License-Identifier: BSL-1.0
// The reader of exchanges, and the proxy's tap that feeds it.
#include "control_client.hpp"
#include "exchange_reader.hpp"
#include "proxy.hpp"
#include "server.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

using namespace redlock::test;
using namespace std::chrono_literals;

namespace
{

/// Returns all exchanges, each as "name reply".
std::vector<std::string> drain(exchange_reader& from)
{
    std::vector<std::string> found;
    while (const auto one = from.next())
    {
        found.push_back(name_of(one->words) + ' ' + one->reply);
    }
    return found;
}

} // namespace

TEST_CASE("every kind of reply is paired with its command, from bytes in any pieces", "[own-servers]")
{
    const std::string reply = GENERATE(
        as<std::string>{}, "+OK\r\n", "-ERR no\r\n", ":-1\r\n", "_\r\n", ",1.5\r\n", "#t\r\n",
        "(123456789\r\n", "$0\r\n\r\n", "$4\r\n\r\n\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
        "=7\r\ntxt:abc\r\n", "!7\r\nERR no!\r\n", "*2\r\n*2\r\n:1\r\n$1\r\na\r\n-WRONGTYPE x\r\n",
        "~1\r\n%1\r\n+a\r\n*0\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n",
        "*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n");
    const bool has_others = GENERATE(false, true);
    CAPTURE(reply, has_others);
    const std::string others = has_others ? ">2\r\n+message\r\n*1\r\n:1\r\n|1\r\n+ttl\r\n:5\r\n" : "";
    const std::string replies = others + reply + others + "+PONG\r\n";
    exchange_reader pieces;
    for (const char each : on_the_wire({"GET", "a\r\nb"}) + on_the_wire({"PING"}))
    {
        pieces.feed_commands({&each, 1});
    }
    std::vector<std::string> found;
    for (std::size_t fed = 0; fed < replies.size(); ++fed)
    {
        pieces.feed_replies({&replies[fed], 1});
        const std::vector<std::string> more = drain(pieces);
        // No reply ends early.
        CHECK(more.empty() == (fed + 1 != others.size() + reply.size() && fed + 1 != replies.size()));
        found.insert(found.end(), more.begin(), more.end());
    }
    const std::vector<std::string> expected{"GET " + reply, "PING +PONG\r\n"};
    CHECK(found == expected);

    exchange_reader whole;
    whole.feed_replies(replies);
    CHECK_FALSE(whole.next());
    whole.feed_commands(on_the_wire({"GET", "a"}) + on_the_wire({"PING"}));
    CHECK(drain(whole) == expected);
}

TEST_CASE("bytes that are no reply are refused", "[own-servers]")
{
    const std::string bytes =
        GENERATE(as<std::string>{}, "OK\r\n", "\r\n", "*x\r\n", "$\r\n", "$-2\r\n", "*1 \r\n", "*1\r\nx\r\n");
    CAPTURE(bytes);
    exchange_reader reader;
    reader.feed_commands(on_the_wire({"PING"}));
    reader.feed_replies(bytes);
    CHECK_THROWS_AS(reader.next(), malformed_reply);
}

TEST_CASE(
    "the proxy's tap sees what reaches the server, and all that the server sends", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    std::mutex mutex;
    std::vector<exchange_reader> readers{3};
    std::vector<std::string> to_server{3};
    proxy between{
        upstream.port(), [&](std::size_t link, bool is_command, std::string_view bytes)
        {
            const std::lock_guard lock{mutex};
            is_command ? readers.at(link).feed_commands(bytes) : readers.at(link).feed_replies(bytes);
            to_server.at(link) += is_command ? bytes : "";
        }};
    control_client first = control_client::to_port(between.port());
    CHECK(first.command({"SET", "key", "value"}) == "OK");
    control_client second = control_client::to_port(between.port());
    CHECK(second.command({"GET", "key"}) == "value");
    between.drop_to_client(true);
    // A change of the proxy returns after it has handled the bytes that have come.
    std::size_t so_far = between.bytes_to_server();
    second.send({"ECHO", "unheard"});
    CHECK(between.wait_for_bytes_to_server(so_far + 1, 20s));
    between.drop_to_server(true);
    so_far = between.bytes_to_server();
    first.send({"SET", "key", "lost"});
    CHECK(between.wait_for_bytes_to_server(so_far + 1, 20s));
    between.drop_to_server(false);

    const std::lock_guard lock{mutex};
    CHECK(drain(readers[0]) == std::vector<std::string>{"SET +OK\r\n"});
    CHECK(to_server[0] == on_the_wire({"SET", "key", "value"}));
    CHECK(drain(readers[1]).front() == "GET $5\r\nvalue\r\n");
    CHECK(to_server[1] == on_the_wire({"GET", "key"}) + on_the_wire({"ECHO", "unheard"}));
    CHECK(to_server[2].empty());
}
