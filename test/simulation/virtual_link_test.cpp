// SPDX-License-Identifier: BSL-1.0
// Tests of a virtual connection: what its client reads at once.
#include "sim_master.hpp"
#include "virtual_link.hpp"

#include <boost/asio/error.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;

/// Keeps each read apart.
struct reading_client final : client_end
{
    void on_connected(error_code) override {}
    void on_bytes(std::string_view bytes) override { reads.emplace_back(bytes); }
    void on_room() override {}
    void on_end(error_code why) override { end = why; }

    std::vector<std::string> reads;
    error_code end;
};

/// A client with a connection to a master.
struct connected_client
{
    connected_client() { link->connect(); }
    ~connected_client() { link->close(); }

    void run()
    {
        while (!world.empty())
        {
            world.run_next();
        }
    }

    virtual_world world{1};
    sim_master master{world, "run id"};
    reading_client client;
    std::shared_ptr<virtual_link> link = std::make_shared<virtual_link>(world, master, client, 0);
};

const std::string one_command = "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n";
const std::string one_reply = ":1\r\n";

} // namespace

TEST_CASE("replies that a master writes at one time are read at once if they join")
{
    connected_client one;
    one.master.network.jitter = GENERATE(0ms, 1ms);
    one.master.network.joins = true;
    one.link->send(one_command + one_command);
    one.run();
    CHECK(one.client.reads == std::vector{one_reply + one_reply});
}

TEST_CASE("each reply is a read of its own if they don't join")
{
    connected_client one;
    one.link->send(one_command + one_command);
    one.run();
    CHECK(one.client.reads == std::vector{one_reply, one_reply});
}

TEST_CASE("pieces of replies don't join")
{
    connected_client one;
    one.master.network.joins = true;
    one.master.network.piece = one_reply.size() - 1;
    one.link->send(one_command);
    one.run();
    CHECK(one.client.reads == std::vector<std::string>{":1\r", "\n"});
}

TEST_CASE("the end of a connection comes behind the replies that join")
{
    connected_client one;
    one.master.network.joins = true;
    one.link->send(one_command);
    one.master.answer("CLIENT ID", {.runs = true, .closes = true});
    one.run();
    CHECK(one.client.reads == std::vector{one_reply});
    CHECK(one.client.end == boost::asio::error::eof);
}

TEST_CASE("what a network has held is read at once if replies join")
{
    connected_client one;
    one.master.network.joins = true;
    one.link->hold_replies();
    one.link->send(one_command);
    one.run();
    one.link->send(one_command);
    one.run();
    REQUIRE(one.client.reads.empty());
    one.link->let_go_of_replies();
    one.run();
    CHECK(one.client.reads == std::vector{one_reply + one_reply});
}

} // namespace redlock::test
