// SPDX-License-Identifier: BSL-1.0
// The tools of the integration tests: real servers, the proxy, the scripted server.
#include "child_process.hpp"
#include "control_client.hpp"
#include "fake_server.hpp"
#include "loopback.hpp"
#include "proxy.hpp"
#include "server.hpp"
#include "sha1.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/socket.h>

using namespace redlock::test;
using namespace std::chrono_literals;

namespace
{

constexpr auto generous = 20s;

/// Returns the errno with which the connection ends while waiting for the next answer; -1 if an answer comes.
int error_of_next_answer(control_client& client)
{
    try
    {
        client.receive();
        return -1;
    }
    catch (const connection_lost& lost)
    {
        return lost.error();
    }
}

/// Returns the size of a command on the wire.
std::size_t size_of(const std::vector<std::string_view>& words)
{
    return on_the_wire(words).size();
}

} // namespace

TEST_CASE("a server answers on its own port and in its own directory, and leaves no file", "[own-servers]")
{
    const std::string program = GENERATE(from_range(server_programs()));
    pid_t pid = 0;
    std::string directory;
    {
        server first{{.program = program, .over = transport::tcp, .as = user::default_user}};
        server second{{.program = program, .over = transport::tcp, .as = user::default_user}};
        CHECK(first.command({"PING"}) == "PONG");
        CHECK(first.port() != second.port());
        CHECK(first.url() == "redis://127.0.0.1:" + std::to_string(first.port()));
        CHECK(second.command({"SET", "key", "value"}) == "OK");
        CHECK(first.command({"GET", "key"}).is_null());
        pid = first.pid();
        directory = first.directory();
        CHECK(std::filesystem::exists(directory));
    }
    CHECK(::kill(pid, 0) == -1);
    CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE("a server listens on a unix socket and requires its password", "[own-servers]")
{
    server plain{{.over = transport::unix_socket, .as = user::default_user}};
    CHECK(plain.url() == "unix://" + plain.directory() + "/socket");
    CHECK(plain.command({"PING"}) == "PONG");

    server guarded{{.over = transport::tcp, .password = "pass:word"}};
    // In a bool, because the text of an assertion must not contain a password.
    const bool is_escaped = guarded.url().starts_with("redis://:pass%3Aword@127.0.0.1:");
    CHECK(is_escaped);
    CHECK(guarded.command({"PING"}) == "PONG");
    control_client stranger = control_client::to_port(guarded.port());
    CHECK(stranger.command({"PING"}).text.starts_with("NOAUTH"));
}

TEST_CASE("a server that can't start reports why, and a missing program is detected", "[own-servers]")
{
    CHECK(have_program("redis-server"));
    CHECK_FALSE(have_program("redis-server-that-is-missing"));
    CHECK_THROWS_AS(server{{.program = "redis-server-that-is-missing"}}, std::runtime_error);
    const std::vector<std::string> wrong{"--maxmemory-policy", "nonsense"};
    CHECK_THROWS_WITH(server{{.settings = wrong}}, Catch::Matchers::ContainsSubstring("maxmemory-policy"));
}

TEST_CASE("the environment selects the servers' programs, and must name an existing one", "[own-servers]")
{
    const auto [variable, name] = GENERATE(
        std::pair{"REDLOCK_TEST_REDIS", "redis-server"}, std::pair{"REDLOCK_TEST_VALKEY", "valkey-server"});
    const char* const given = std::getenv(variable);
    const std::string before = given == nullptr ? "" : given;
    const temporary_directory files;
    const std::string chosen = files.path() + "/chosen";
    std::ofstream{chosen} << fmt::format(
        "#!/bin/sh\ntouch {}/ran\nexec {} \"$@\"\n", files.path(), program_of("redis-server"));
    std::filesystem::permissions(chosen, std::filesystem::perms::owner_all);

    ::setenv(variable, chosen.c_str(), 1);
    {
        server one{{.program = name, .over = transport::tcp, .as = user::default_user}};
        CHECK(one.command({"PING"}) == "PONG");
    }
    CHECK(std::filesystem::exists(files.path() + "/ran"));
    ::setenv(variable, (chosen + "-and-gone").c_str(), 1);
    CHECK_THROWS_WITH(have_program(name), Catch::Matchers::ContainsSubstring(variable));
    // An empty variable counts as unset.
    ::setenv(variable, before.c_str(), 1);
}

TEST_CASE(
    "a child with a conversation reads, writes and sees its end; its stderr is written to the file",
    "[own-servers]")
{
    const temporary_directory directory;
    const std::string output = directory.path() + "/output";
    unique_fd conversation;
    const child_process echo{{"sh", "-c", "cat; echo complaint >&2"}, output, conversation};
    const std::string said = "hello";
    REQUIRE(::send(conversation.get(), said.data(), said.size(), MSG_NOSIGNAL) == 5);
    REQUIRE(::shutdown(conversation.get(), SHUT_WR) == 0);
    std::string heard;
    char byte = '\0';
    while (::recv(conversation.get(), &byte, 1, 0) == 1)
    {
        heard += byte;
    }
    CHECK(heard == said);
    CHECK(echo.wait_for_end(generous));
    std::ifstream file{output};
    std::string complaint;
    CHECK(std::getline(file, complaint));
    CHECK(complaint == "complaint");
}

TEST_CASE("a killed server is restarted on its port, and keeps its keys only with AOF", "[own-servers]")
{
    const bool persistent = GENERATE(true, false);
    const std::vector<std::string> aof{"--appendonly", "yes", "--appendfsync", "always"};
    server subject{{.settings = persistent ? aof : std::vector<std::string>{}}};
    const int port = subject.port();
    const pid_t before = subject.pid();
    REQUIRE(subject.command({"SET", "key", "value"}) == "OK");

    subject.kill();
    CHECK_FALSE(subject.running());
    CHECK(subject.pid() == -1);
    CHECK_THROWS_AS(subject.command({"PING"}), connection_lost);

    subject.restart();
    CHECK(subject.running());
    CHECK(subject.port() == port);
    CHECK(subject.pid() != before);
    const reply value = subject.command({"GET", "key"});
    CHECK(value.is_null() == !persistent);
}

TEST_CASE("nobody listens on the port of a killed server until it is given up", "[own-servers]")
{
    server subject{server_options::plain()};
    const int port = subject.port();
    const auto can_listen = [port]
    {
        const unique_fd other = open_socket(AF_INET);
        const int on = 1;
        ::setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); // As servers do.
        const sockaddr_in address = loopback_address(port);
        return ::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
               ::listen(other.get(), 1) == 0;
    };
    subject.kill();
    CHECK_FALSE(can_listen());
    CHECK_THROWS_AS(connect_to_loopback(port), std::system_error);
    subject.give_up_port();
    CHECK(can_listen());
}

TEST_CASE("a stopped server receives bytes, and answers them once it is resumed", "[own-servers]")
{
    server subject{server_options::plain()};
    control_client client = control_client::to_port(subject.port());
    subject.stop();
    subject.stop();
    CHECK(subject.running());
    client.send({"SET", "key", "value"});
    CHECK_FALSE(client.wait_readable(50ms));
    subject.resume();
    CHECK(client.receive() == "OK");

    subject.stop();
    subject.kill();
    CHECK_FALSE(subject.running());
}

TEST_CASE("start_servers starts the given number of servers, and a server can be moved", "[own-servers]")
{
    std::vector<server> servers = start_servers(3);
    server moved = std::move(servers.at(1));
    servers.erase(servers.begin());
    CHECK(servers.back().command({"PING"}) == "PONG");
    servers.clear();
    CHECK(moved.command({"PING"}) == "PONG");
}

TEST_CASE("the proxy forwards, counts, delays and splits", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client client = control_client::to_port(between.port());
    CHECK(client.command({"SET", "key", "value"}) == "OK");
    REQUIRE(between.wait_for_connections(1, generous));
    CHECK(between.connections() == 1);
    CHECK(between.accepted() == 1);
    CHECK(between.bytes_to_server() == size_of({"SET", "key", "value"}));
    CHECK_FALSE(between.wait_for_bytes_to_server(size_of({"SET", "key", "value"}) + 1, 1ms));

    between.split_bytes(true);
    const std::string large(5000, 'x');
    CHECK(client.command({"ECHO", large}) == large);
    between.split_bytes(false);

    between.set_delay(30ms);
    const auto before = std::chrono::steady_clock::now();
    CHECK(client.command({"GET", "key"}) == "value");
    CHECK(std::chrono::steady_clock::now() - before >= 60ms);
}

TEST_CASE("the proxy supports delays below a millisecond", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client client = control_client::to_port(between.port());
    REQUIRE(client.command({"PING"}) == "PONG");
    between.set_delay(1500us);
    // Both ways together, rounded to whole milliseconds: 2 or 4 ms.
    auto shortest = std::chrono::steady_clock::duration::max();
    const auto begun = std::chrono::steady_clock::now();
    while (shortest >= 4ms && std::chrono::steady_clock::now() - begun < 1min)
    {
        const auto before = std::chrono::steady_clock::now();
        REQUIRE(client.command({"PING"}) == "PONG");
        shortest = std::min(shortest, std::chrono::steady_clock::now() - before);
    }
    CHECK(shortest >= 3ms);
    CHECK(shortest < 4ms);
}

TEST_CASE("the proxy holds each direction and delivers in order", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client client = control_client::to_port(between.port());
    REQUIRE(client.command({"PING"}) == "PONG");

    between.hold_to_server();
    const std::size_t before = between.bytes_to_server();
    client.send({"SET", "key", "1"});
    client.send({"INCR", "key"});
    const std::size_t sent = size_of({"SET", "key", "1"}) + size_of({"INCR", "key"});
    REQUIRE(between.wait_for_bytes_to_server(before + sent, generous));
    CHECK(upstream.command({"GET", "key"}).is_null());
    between.release_held();
    CHECK(client.receive() == "OK");
    CHECK(client.receive() == 2);

    between.hold_to_client();
    client.send({"INCR", "key"});
    CHECK_FALSE(client.wait_readable(50ms));
    between.release_held();
    CHECK(client.receive() == 3);
}

TEST_CASE("dropped bytes never arrive", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client client = control_client::to_port(between.port());
    between.drop_to_server(true);
    client.send({"SET", "lost", "1"});
    REQUIRE(between.wait_for_bytes_to_server(size_of({"SET", "lost", "1"}), generous));
    between.drop_to_server(false);
    CHECK(client.command({"SET", "kept", "1"}) == "OK");
    CHECK(upstream.command({"EXISTS", "lost"}) == 0);

    between.drop_to_client(true);
    client.send({"INCR", "kept"});
    CHECK_FALSE(client.wait_readable(50ms));
    CHECK(upstream.command({"GET", "kept"}) == "2");
    between.drop_to_client(false);
    CHECK(client.command({"GET", "kept"}) == "2");
}

TEST_CASE("the proxy resets, closes and refuses connections", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client first = control_client::to_port(between.port());
    REQUIRE(first.command({"PING"}) == "PONG");
    between.reset_connections();
    CHECK(between.connections() == 0);
    CHECK(error_of_next_answer(first) == ECONNRESET);

    control_client second = control_client::to_port(between.port());
    REQUIRE(second.command({"PING"}) == "PONG");
    between.close_connections();
    CHECK(between.connections() == 0);
    CHECK(error_of_next_answer(second) == 0);

    between.refuse(true);
    control_client third = control_client::to_port(between.port());
    CHECK(error_of_next_answer(third) == 0);
    between.refuse(false);
    control_client fourth = control_client::to_port(between.port());
    CHECK(fourth.command({"PING"}) == "PONG");
    CHECK(between.accepted() == 4);
}

TEST_CASE("the proxy connects later clients to another server", "[threads][own-servers]")
{
    server former{server_options::plain()};
    server next{server_options::plain()};
    proxy between{former.port()};
    control_client client = control_client::to_port(between.port());
    REQUIRE(client.command({"SET", "key", "former"}) == "OK");
    REQUIRE(next.command({"SET", "key", "next"}) == "OK");
    between.redirect(next.port());
    CHECK(client.command({"GET", "key"}) == "former");
    CHECK(control_client::to_port(between.port()).command({"GET", "key"}) == "next");
}

TEST_CASE("the proxy passes on the ends of connections of clients and servers", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    {
        control_client leaving = control_client::to_port(between.port());
        REQUIRE(leaving.command({"PING"}) == "PONG");
    }
    CHECK(between.wait_for_no_connection(generous));
    control_client staying = control_client::to_port(between.port());
    REQUIRE(staying.command({"PING"}) == "PONG");
    upstream.kill();
    CHECK(error_of_next_answer(staying) != ETIMEDOUT);
    control_client late_comer = control_client::to_port(between.port());
    CHECK(error_of_next_answer(late_comer) == ECONNRESET);
}

TEST_CASE(
    "a SET that is held when its client is disconnected runs once it is released", "[threads][own-servers]")
{
    server upstream{server_options::plain()};
    proxy between{upstream.port()};
    control_client client = control_client::to_port(between.port());
    const reply id = client.command({"CLIENT", "ID"});
    const std::size_t before = between.bytes_to_server();
    between.hold_to_server();
    client.send({"SET", "ghost", "1"});
    REQUIRE(between.wait_for_bytes_to_server(before + size_of({"SET", "ghost", "1"}), generous));
    between.close_client_side_keep_server();
    CHECK(error_of_next_answer(client) == ECONNRESET);
    CHECK(between.connections() == 0);

    // The next connection isn't held, and the server still has the old one.
    control_client next = control_client::to_port(between.port());
    CHECK(next.command({"EXISTS", "ghost"}) == 0);
    const bool fenced = GENERATE(false, true);
    if (fenced)
    {
        CHECK(next.command({"CLIENT", "KILL", "ID", std::to_string(id.integer)}) == 1);
    }
    between.release_held();
    if (fenced)
    {
        // The bytes reached a closed connection. Otherwise the SET would have run within two round trips.
        CHECK(next.command({"PING"}) == "PONG");
        CHECK(next.command({"EXISTS", "ghost"}) == 0);
        return;
    }
    // The SET has no reply that could be awaited, so the server is polled.
    const auto deadline = std::chrono::steady_clock::now() + generous;
    bool appeared = false;
    while (!appeared && std::chrono::steady_clock::now() < deadline)
    {
        appeared = upstream.command({"EXISTS", "ghost"}) == 1;
    }
    CHECK(appeared);
}

TEST_CASE("an honest scripted server behaves as a master with state", "[threads][own-servers]")
{
    const auto master = std::make_shared<fake_redis>(honest_options{.password = "secret"});
    fake_server subject{honest(master)};
    control_client client = control_client::to_port(subject.port());
    CHECK(client.command({"PING"}).text.starts_with("NOAUTH"));
    CHECK(client.command({"AUTH", "wrong"}).text.starts_with("WRONGPASS"));
    const reply hello = client.command({"HELLO", "2", "AUTH", "default", "secret", "SETNAME", "me"});
    REQUIRE(hello.elements.size() == 14);
    CHECK(
        client.command({"INFO", "server"}).text.find("run_id:" + master->options().run_id) !=
        std::string::npos);
    CHECK(client.command({"SET", "key", "mine", "NX", "PX", "60000"}) == "OK");
    CHECK(client.command({"SET", "key", "yours", "NX", "PX", "60000"}).is_null());

    const std::string release =
        "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end";
    CHECK(client.command({"EVALSHA", sha1_hex(release), "1", "key", "mine"}).text.starts_with("NOSCRIPT"));
    CHECK(client.command({"SCRIPT", "LOAD", release}) == sha1_hex(release));
    CHECK(client.command({"EVALSHA", sha1_hex(release), "1", "key", "yours"}) == 0);
    CHECK(master->value("key") == "mine");
    CHECK(client.command({"EVALSHA", sha1_hex(release), "1", "key", "mine"}) == 1);
    CHECK(master->value("key") == std::nullopt);
    CHECK(sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");

    const reply id = client.command({"CLIENT", "ID"});
    control_client other = control_client::to_port(subject.port());
    REQUIRE(other.command({"AUTH", "secret"}) == "OK");
    CHECK(other.command({"CLIENT", "KILL", "ID", std::to_string(id.integer)}) == 1);
    CHECK(error_of_next_answer(client) == 0);
    CHECK(other.command({"CLIENT", "KILL", "ID", std::to_string(id.integer)}) == 0);
    CHECK(subject.count("SET") == 2);
    CHECK(subject.complaints().empty());
}

TEST_CASE(
    "each misbehaviour applies from the start, or to lock commands after an honest handshake",
    "[threads][own-servers]")
{
    const applies when = GENERATE(applies::from_the_start, applies::to_locks);
    const auto bytes_of = [when](behaviour how, std::size_t limit = 1'000'000)
    {
        fake_server subject{std::move(how)};
        control_client client = control_client::to_port(subject.port());
        if (when == applies::to_locks)
        {
            REQUIRE(client.command({"HELLO", "2"}).elements.size() == 14);
        }
        client.send({"SET", "key", "value", "NX", "PX", "1000"});
        CHECK(subject.wait_for_command("SET", 1, generous));
        return client.receive_until_end(limit);
    };
    CHECK(bytes_of(speaks_http(when)).starts_with("HTTP/1.1 400"));
    CHECK(bytes_of(garbage(when), 4) == std::string("\x00\xff\x13\x37", 4));
    CHECK(bytes_of(huge_bulk_length(when), 14) == "$4294967296\r\nx");
    const std::string line = bytes_of(endless_line(200'000, when), 200'000);
    CHECK(line.size() == 200'000);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(bytes_of(answers_twice(when), 10) == "+OK\r\n+OK\r\n");
    CHECK(bytes_of(closes_in_the_middle(when)) == "+O");
    CHECK(bytes_of(closes_instead(when)).empty());
    CHECK(bytes_of(closes_after(when)) == "+OK\r\n");
    CHECK(bytes_of(in_single_bytes(when), 5) == "+OK\r\n");
    CHECK(bytes_of(says("-LOADING\r\n", when), 10) == "-LOADING\r\n");
}

TEST_CASE("answers can be late or missing, and can be scripted by the test", "[threads][own-servers]")
{
    fake_server slow{late(40ms, applies::to_locks)};
    control_client patient = control_client::to_port(slow.port());
    const auto before = std::chrono::steady_clock::now();
    patient.send({"SET", "key", "value"});
    patient.send({"GET", "key"});
    CHECK(patient.receive() == "OK");
    CHECK(std::chrono::steady_clock::now() - before >= 40ms);
    CHECK(patient.receive() == "value");

    fake_server mute{silent(applies::to_locks)};
    REQUIRE(control_client::to_port(mute.port()).command({"PING"}) == "PONG");
    control_client unanswered = control_client::to_port(mute.port(), 50ms);
    unanswered.send({"SET", "key", "value"});
    unanswered.send({"PING"});
    CHECK(mute.wait_for_command("PING", 2, generous));
    CHECK(error_of_next_answer(unanswered) == ETIMEDOUT);
    mute.end_connections();
    CHECK(mute.wait_for_no_connection(generous));

    fake_server own{answering([](session&, const command& words) { return answer{words.back()}; })};
    {
        control_client client = control_client::to_port(own.port());
        CHECK(client.command({"twice", ":3\r\n"}) == 3);
        client.send_bytes("nonsense\r\n");
        CHECK(error_of_next_answer(client) == 0);
    }
    CHECK(own.wait_for_no_connection(generous));
    CHECK(own.complaints().size() == 1);
    own.behave([](session& from) { from.reset(); });
    control_client cut_off = control_client::to_port(own.port());
    CHECK(error_of_next_answer(cut_off) == ECONNRESET);
}
