// SPDX-License-Identifier: BSL-1.0
// Late writes of a holder in guarded mode, to a resource that compares tokens.
#include "integration/fenced_value.hpp"
#include "integration/guarded_masters.hpp"
#include "support/child_process.hpp"
#include "support/proxy.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// A holder in its own process, which may be stopped.
class late_writer
{
  public:
    late_writer(guarded_masters& masters, const server& resource)
        : process_{arguments(masters, resource), directory_.path() + "/output", conversation_}
    {
    }

    /// Returns the next line that it writes.
    std::string hear()
    {
        std::string line;
        const auto deadline = std::chrono::steady_clock::now() + patience;
        for (char byte = '\0';;)
        {
            const bool is_there = wait_for(conversation_.get(), POLLIN, deadline);
            if (!is_there || ::recv(conversation_.get(), &byte, 1, 0) != 1)
            {
                throw stuck{"the holder says nothing: " + complaint()};
            }
            if (byte == '\n')
            {
                return line;
            }
            line += byte;
        }
    }
    /// Returns the token in its first line.
    std::uint64_t token()
    {
        const std::string line = hear();
        INFO(line);
        CHECK(line.ends_with(", value 0"));
        return std::stoull(line.substr(std::string_view{"token "}.size()));
    }
    void stop() { process_.stop(); }
    void resume() { process_.resume(); }
    /// Lets it write, and returns what it says about that.
    std::string write()
    {
        REQUIRE(::send(conversation_.get(), "\n", 1, MSG_NOSIGNAL) == 1);
        return hear();
    }

  private:
    static std::vector<std::string> arguments(guarded_masters& masters, const server& resource)
    {
        std::vector<std::string> all{
            LATE_WRITER, std::to_string(masters.max_ttl().count()), std::to_string(resource.port())};
        for (const server& each : masters.servers())
        {
            all.push_back(each.url());
        }
        return all;
    }
    std::string complaint() const
    {
        const std::ifstream file{directory_.path() + "/output"};
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }

    temporary_directory directory_;
    unique_fd conversation_;
    child_process process_;
};

/// A guarded group, a resource, and the client that takes over.
struct takeover
{
    guarded_masters masters{3, 800ms, keeping_data("redis-server", persistence::none)};
    server resource{server_options::plain()};
    guarded_clients clients{masters.options(), 1};
    fenced_value account{control_client::to_port(resource.port())};

    /// Acquires the lock, which is possible when the lease of the other holder has expired.
    std::uint64_t next_token()
    {
        held = clients.win(0, "account", masters.max_ttl());
        return held.fencing_token().value();
    }

    /// Stops the holder, and acquires the lock after it.
    std::uint64_t token_after(late_writer& stopped)
    {
        const std::uint64_t token = stopped.token();
        stopped.stop();
        const std::uint64_t next = next_token();
        CHECK(next > token);
        return next;
    }

    redlock::lease held{};
};

} // namespace

TEST_CASE(
    "guarded: a resource that compares tokens refuses the write of a holder that was stopped too long",
    "[guarded][own-servers][scenario-1]")
{
    takeover of;
    late_writer stopped{of.masters, of.resource};
    const std::uint64_t next = of.token_after(stopped);
    CHECK(of.account.open(next) == 0);
    stopped.resume();
    CHECK(stopped.write() == "refused");
    CHECK(of.account.write(next, 10));
    CHECK(stopped.write() == "refused");
    CHECK(of.account.open(next) == 10);
}

TEST_CASE(
    "guarded: a resource that compares tokens refuses a write that was in flight for longer than the lease",
    "[guarded][own-servers][threads][scenario-3]")
{
    takeover of;
    proxy network{of.resource.port()};
    fenced_value slow{control_client::to_port(network.port())};
    redlock::lease late = of.clients.win(0, "account", of.masters.max_ttl());
    const std::uint64_t token = late.fencing_token().value();
    CHECK(slow.open(token) == 0);
    network.hold_to_server();
    const std::size_t sent = network.bytes_to_server();
    slow.send_write(token, 1);
    REQUIRE(network.wait_for_bytes_to_server(sent + 1, patience));
    const std::uint64_t next = of.next_token();
    CHECK(!late.valid());
    CHECK(next > token);
    CHECK(of.account.open(next) == 0);
    network.release_held();
    CHECK(!slow.is_written());
    CHECK(of.account.open(next) == 0);
}

TEST_CASE(
    "guarded: a late write ahead of the next holder's token succeeds, and the next holder reads it",
    "[guarded][own-servers][scenario-75]")
{
    takeover of;
    late_writer stopped{of.masters, of.resource};
    const std::uint64_t next = of.token_after(stopped);
    stopped.resume();
    CHECK(stopped.write() == "wrote 1"); // The resource knows no larger token.
    // The next holder opens first, so it works on what was written.
    CHECK(of.account.open(next) == 1);
    CHECK(stopped.write() == "refused");
    CHECK(of.account.write(next, 11));
    CHECK(of.account.open(next) == 11);
}

} // namespace redlock::test
