// SPDX-License-Identifier: BSL-1.0
// The scripts of the wait queue, on real servers. The times of the queue are those of the server's clock: either so long
// that they don't end during a test, or so short that the test waits until the server's clock has passed them.
#include "net/queue_scripts.hpp"
#include "support/server.hpp"
#include "support/sha1.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace redlock::test
{

namespace
{

constexpr std::string_view key = "invoice:7";
constexpr std::string_view order_key = "redlock-queue:order:invoice:7";
constexpr std::string_view alive_key = "redlock-queue:alive:invoice:7";
constexpr std::string_view an_hour = "3600000";

/// The arguments of a question, in milliseconds.
struct question_times
{
    std::string_view waited = "0";
    std::string_view liveness = an_hour;
    std::string_view grace = an_hour;
};

/// A server with one resource and its queue.
class queue_master
{
  public:
    queue_master()
    {
        server_options options = server_options::plain();
        options.program = GENERATE("redis-server", "valkey-server");
        server_.emplace(options);
    }

    server& get() { return *server_; }

    reply ask(std::string_view member, const question_times& how = {})
    {
        const std::string owner = fmt::format("owner of {}", member);
        return server_->command(
            {"EVAL", net::ask_script.text, "1", key, member, owner, an_hour, how.waited, how.liveness,
             how.grace});
    }
    reply release(std::string_view owner, std::string_view mode, std::string_view member = "")
    {
        return server_->command(
            {"EVAL", net::release_to_queue_script.text, "1", key, owner, an_hour, mode, member, "0", an_hour,
             an_hour});
    }
    /// Gives the key to a client that doesn't queue.
    void lock() { REQUIRE(server_->command({"SET", key, "foreign", "NX", "PX", an_hour}) == "OK"); }
    /// Removes the key without waking a waiter, as if it had expired.
    void expire() { REQUIRE(server_->command({"DEL", key}) == 1); }
    std::string holder() { return server_->command({"GET", key}).text; }
    std::vector<std::string> queue()
    {
        std::vector<std::string> members;
        for (const reply& each : server_->command({"ZRANGE", order_key, "0", "-1"}).elements)
        {
            members.push_back(each.text);
        }
        return members;
    }
    bool has_no_queue() { return server_->command({"EXISTS", order_key, alive_key}) == 0; }
    std::int64_t time()
    {
        const reply now = server_->command({"TIME"});
        return std::stoll(now.elements.at(0).text) * 1'000'000 + std::stoll(now.elements.at(1).text);
    }
    /// Waits until the server's clock has advanced by more than a few milliseconds.
    void let_pass_milliseconds()
    {
        constexpr std::int64_t enough = 5'000;
        for (const std::int64_t from = time(); time() <= from + enough;)
        {
        }
    }

  private:
    std::optional<server> server_;
};

/// A subscribed manager.
class manager
{
  public:
    manager(queue_master& at, std::string_view id)
        : client_{control_client::to_port(at.get().port())}, channel_{fmt::format("redlock:{}", id)}
    {
        client_.command({"SUBSCRIBE", channel_});
    }

    /// Returns the messages that were published before this call.
    std::vector<std::string> messages(queue_master& at)
    {
        at.get().command({"PUBLISH", channel_, "end"});
        std::vector<std::string> found;
        for (;;)
        {
            const reply each = client_.receive();
            if (each.elements.at(2) == "end")
            {
                return found;
            }
            found.push_back(each.elements.at(2).text);
        }
    }

  private:
    control_client client_;
    std::string channel_;
};

using strings = std::vector<std::string>;

/// Checks a refusal: the position, and the number of clients that wait.
void check_refused(const reply& answer, std::int64_t position, std::int64_t waiting)
{
    INFO(describe(answer));
    REQUIRE(answer.elements.size() == 3);
    CHECK(answer.elements[0] == position);
    CHECK(answer.elements[2] == waiting);
}

} // namespace

TEST_CASE("queue: the digests are those of the scripts")
{
    CHECK(sha1_hex(net::ask_script.text) == net::ask_script.sha1);
    CHECK(sha1_hex(net::release_to_queue_script.text) == net::release_to_queue_script.sha1);
}

TEST_CASE("queue: a free resource without waiters is granted, and no queue is created")
{
    queue_master at;
    CHECK(at.ask("a:1") == 0);
    CHECK(at.holder() == "owner of a:1");
    CHECK(at.get().command({"PTTL", key}).integer > 3'000'000);
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: a client that asks twice is granted twice, with the full ttl")
{
    queue_master at;
    at.ask("a:1");
    at.get().command({"PEXPIRE", key, "600000"});
    CHECK(at.ask("a:1") == 0);
    CHECK(at.get().command({"PTTL", key}).integer > 3'000'000);
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: refused clients queue by the time for which they have waited")
{
    queue_master at;
    at.lock();
    check_refused(at.ask("a:1"), 0, 1);
    check_refused(at.ask("b:1"), 1, 2);
    const reply longest = at.ask("c:1", {.waited = "60000"});
    check_refused(longest, 0, 3);
    CHECK(longest.elements.at(1).integer > 3'000'000); // PTTL.
    CHECK(at.queue() == strings{"c:1", "a:1", "b:1"});
    check_refused(at.ask("a:1", {.waited = "90000"}), 1, 3); // It keeps its arrival.
    CHECK(at.get().command({"PTTL", order_key}).integer > 3'600'000);
    CHECK(at.get().command({"PTTL", alive_key}).integer > 3'600'000);
}

TEST_CASE("queue: without liveness a client is refused and not entered")
{
    queue_master at;
    at.lock();
    check_refused(at.ask("a:1", {.liveness = "0"}), -1, 0);
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: a release wakes the first client only, which is then granted")
{
    queue_master at;
    manager a{at, "a"};
    manager b{at, "b"};
    at.lock();
    at.ask("a:1");
    at.ask("b:7");
    CHECK(at.release("foreign", "released") == 3);
    CHECK(a.messages(at) == strings{"r1"});
    CHECK(b.messages(at).empty());
    check_refused(at.ask("b:7"), 1, 2);
    CHECK(at.holder().empty());
    CHECK(at.ask("a:1") == 1);
    CHECK(at.holder() == "owner of a:1");
    CHECK(at.queue() == strings{"b:7"});
}

TEST_CASE("queue: a release wakes a client even if the key isn't ours")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    CHECK(at.release("expired owner", "released") == 2);
    CHECK(at.holder() == "foreign");
    CHECK(a.messages(at) == strings{"r1"});
}

TEST_CASE("queue: a client that was woken, and lost to one outside the queue, is woken by the next release")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.release("foreign", "released");
    at.lock();
    check_refused(at.ask("a:1"), 0, 1);
    CHECK(at.release("foreign", "released") == 3);
    CHECK(a.messages(at) == strings{"r1", "r1"});
}

TEST_CASE("queue: killed waiters cost nothing")
{
    queue_master at;
    manager z{at, "f"};
    at.lock();
    for (int each = 0; each < 30; ++each)
    {
        at.ask(fmt::format("dead:{}", each)); // No manager is subscribed.
    }
    at.ask("f:1");
    CHECK(at.release("foreign", "released") == 3);
    CHECK(at.queue() == strings{"f:1"});
    CHECK(z.messages(at) == strings{"r1"});
}

TEST_CASE("queue: an expired lock wakes the first client as soon as another one asks")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.expire();
    check_refused(at.ask("b:1"), 1, 2);
    CHECK(a.messages(at) == strings{"k1"});
    check_refused(at.ask("b:1"), 1, 2);
    // It stays the one to be served. The message shows that it is still connected.
    CHECK(a.messages(at) == strings{"k1"});
    CHECK(at.ask("a:1") == 1);
}

TEST_CASE("queue: a client outside the queue is refused while another one is being woken")
{
    queue_master at;
    const manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.expire();
    check_refused(at.ask("c:1", {.liveness = "0"}), -1, 1);
    CHECK(at.holder().empty());
}

TEST_CASE("queue: a waiter that doesn't come within the grace is dropped")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.release("foreign", "released");
    at.let_pass_milliseconds();
    CHECK(at.ask("b:1", {.grace = "1"}) == 0);
    CHECK(a.messages(at) == strings{"r1"});
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: the questions of others don't prolong the grace of a waiter that was woken")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.release("foreign", "released");
    const std::string woken = at.get().command({"HGET", alive_key, ""}).text;
    CHECK(woken.starts_with("a:1 "));
    at.let_pass_milliseconds();
    check_refused(at.ask("b:1"), 1, 2);
    CHECK(a.messages(at) == strings{"r1", "k1"});
    CHECK(at.get().command({"HGET", alive_key, ""}) == woken);
}

TEST_CASE("queue: a waiter that was woken in vain, and has asked since, is woken again after the grace")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.release("another", "released"); // Of a lease that has no key here.
    check_refused(at.ask("a:1"), 0, 1);
    at.let_pass_milliseconds();
    CHECK(at.get().command({"EVAL", net::release_to_queue_script.text, "1", key, "foreign", "1"}) == 3);
    CHECK(a.messages(at) == strings{"r1", "r1"});
    CHECK(at.ask("a:1") == 0);
}

TEST_CASE("queue: a waiter whose deadline has passed is dropped, though its manager is subscribed")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1", {.liveness = "1"});
    at.ask("b:1");
    at.let_pass_milliseconds();
    at.expire();
    CHECK(at.ask("b:1") == 0);
    CHECK(a.messages(at).empty());
}

TEST_CASE("queue: a waiter that asks again is not late")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1", {.liveness = "1"});
    at.let_pass_milliseconds();
    at.ask("a:1");
    CHECK(at.release("foreign", "released") == 3);
    CHECK(a.messages(at) == strings{"r1"});
}

TEST_CASE("queue: a waiter without a subscription isn't sent messages, and isn't dropped for that")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("-a:1");
    at.ask("b:1");
    CHECK(at.release("foreign", "released") == 3);
    CHECK(a.messages(at).empty());
    check_refused(at.ask("b:1"), 1, 2);
    CHECK(at.ask("-a:1") == 1);
}

TEST_CASE("queue: a waiter whose subscription changes keeps its entry under its new name")
{
    queue_master at;
    at.lock();
    at.ask("-a:1");
    at.ask("b:1");
    check_refused(at.ask("a:1"), 0, 2);
    CHECK(at.queue() == strings{"a:1", "b:1"});
    check_refused(at.ask("-a:1"), 0, 2);
    CHECK(at.queue() == strings{"-a:1", "b:1"});
    at.expire();
    CHECK(at.ask("a:1") == 1);
    CHECK(at.release("owner of a:1", "lost", "-b:1") == 1);
    CHECK(at.queue() == strings{"-b:1"});
    at.release("unknown", "left", "b:1");
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: a woken waiter whose subscription changes isn't overtaken by an older one")
{
    queue_master at;
    manager c{at, "c"};
    at.lock();
    at.ask("-b:1");
    at.release("foreign", "released");
    check_refused(at.ask("c:1", {.waited = "60000"}), 0, 2);
    CHECK(at.holder().empty());
    CHECK(at.ask("b:1") == 1);
    CHECK(c.messages(at).empty());
}

TEST_CASE("queue: a late waiter doesn't stay the first of a resource that is held")
{
    queue_master at;
    at.lock();
    at.ask("a:1", {.liveness = "1"});
    at.ask("b:1", {.liveness = "1"});
    at.ask("c:1");
    at.let_pass_milliseconds();
    check_refused(at.ask("c:1"), 0, 3);
    check_refused(at.ask("d:1"), 1, 4);
    check_refused(at.ask("a:1"), 0, 4); // It keeps its place.
    check_refused(at.ask("c:1"), 2, 4);
    check_refused(at.ask("b:1"), 1, 4);
}

TEST_CASE("queue: an older waiter that returns doesn't overtake the one that was woken")
{
    queue_master at;
    const manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.release("foreign", "released");
    check_refused(at.ask("b:1", {.waited = "60000"}), 0, 2);
    CHECK(at.holder().empty());
    CHECK(at.ask("a:1") == 1);
}

TEST_CASE("queue: a client that leaves wakes the next one only if the resource is free for it")
{
    queue_master at;
    manager b{at, "b"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.ask("c:1");
    CHECK(at.release("unknown", "left", "c:1") == 2); // Not the first.
    CHECK(at.release("unknown", "left", "a:1") == 2); // The first, but the resource is locked.
    CHECK(b.messages(at).empty());
    at.ask("a:1", {.waited = "60000"});
    at.expire();
    CHECK(at.release("unknown", "left", "a:1") == 2);
    CHECK(b.messages(at) == strings{"r1"});
    CHECK(at.queue() == strings{"b:1"});
}

TEST_CASE("queue: a woken client that leaves wakes the next one, though an older one has returned")
{
    queue_master at;
    manager a{at, "a"};
    const manager c{at, "c"};
    at.lock();
    at.ask("b:1");
    at.ask("a:1", {.waited = "1000"});
    at.ask("c:1", {.waited = "500"});
    at.release("foreign", "left", "a:1"); // c:1 is the first now, and is woken.
    at.ask("a:1", {.waited = "1000"});
    CHECK(a.messages(at).empty());
    at.release("nobody", "left", "c:1");
    CHECK(a.messages(at) == strings{"r1"});
}

TEST_CASE("queue: a client that leaves with the key wakes the next one")
{
    queue_master at;
    manager b{at, "b"};
    REQUIRE(at.ask("a:1") == 0);
    at.ask("b:1");
    CHECK(at.release("owner of a:1", "left", "a:1") == 3);
    CHECK(b.messages(at) == strings{"r1"});
}

TEST_CASE("queue: no key is left when the last client has left")
{
    queue_master at;
    at.lock();
    at.ask("a:1");
    CHECK(at.release("unknown", "left", "a:1") == 0);
    CHECK(at.has_no_queue());
    at.ask("b:1");
    CHECK(at.release("foreign", "released", "b:1") == 1);
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: a client whose round was lost keeps its position, and is not overtaken in its pause")
{
    queue_master at;
    manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.release("foreign", "released");
    REQUIRE(at.ask("a:1") == 1);
    CHECK(at.release("owner of a:1", "lost", "a:1") == 3);
    CHECK(at.queue() == strings{"b:1", "a:1"}); // It has waited for 0 ms, by its own words.
    check_refused(at.ask("b:1"), 0, 2);
    CHECK(at.release("unknown", "released") == 2);
    CHECK(a.messages(at) == strings{"r1", "k1", "r1"});
    CHECK(at.ask("a:1") == 1);
}

TEST_CASE("queue: a refused round that is lost late doesn't overtake the client that was woken meanwhile")
{
    queue_master at;
    manager a{at, "a"};
    manager b{at, "b"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.release("foreign", "released");
    REQUIRE(at.release("unknown", "left", "a:1") == 2);
    // What follows was sent before the refusal arrived.
    check_refused(at.ask("a:1", {.waited = "1000"}), 0, 2);
    CHECK(at.release("owner of a:1", "lost", "a:1") == 2);
    check_refused(at.ask("a:1", {.waited = "1000"}), 0, 2);
    CHECK(b.messages(at) == strings{"r1", "k1", "k1"});
    CHECK(at.ask("b:1") == 1);
}

TEST_CASE("queue: a woken client that has been killed is dropped by the next question")
{
    queue_master at;
    std::optional<manager> a{std::in_place, at, "a"};
    at.lock();
    at.ask("a:1");
    at.ask("b:1");
    at.release("foreign", "released");
    check_refused(at.ask("b:1"), 1, 2);
    a.reset();
    // Until the server has seen the end of the connection.
    while (at.get().command({"PUBSUB", "NUMSUB", "redlock:a"}).elements.at(1) != 0)
    {
    }
    CHECK(at.ask("b:1") == 0);
}

TEST_CASE("queue: a client leaves the queue of a key of another type")
{
    queue_master at;
    at.get().command({"HSET", key, "field", "value"});
    at.ask("a:1");
    CHECK(at.queue() == strings{"a:1"});
    CHECK(at.release("unknown", "left", "a:1").text.starts_with("WRONGTYPE"));
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: a clock that was set back changes no position and no deadline")
{
    queue_master at;
    const manager a{at, "a"};
    at.lock();
    at.ask("a:1");
    // The last reading is half an hour ahead of the clock, as is everything that was computed from it.
    const std::int64_t ahead = at.time() + 1'800'000'000;
    at.get().command({"HSET", alive_key, "@", fmt::format("{} 0", ahead)});
    at.get().command({"ZADD", order_key, fmt::format("{}", ahead), "a:1"});
    check_refused(at.ask("b:1"), 1, 2);
    const std::string reading = at.get().command({"HGET", alive_key, "@"}).text;
    check_refused(at.ask("c:1"), 2, 3);
    const std::int64_t read = std::stoll(reading); // TIME itself.
    CHECK(read < ahead);
    CHECK(std::stoll(reading.substr(reading.find(' '))) == ahead - read); // The skew.
    check_refused(at.ask("a:1"), 0, 3);
}

TEST_CASE("queue: a clock may be set back again")
{
    queue_master at;
    at.lock();
    at.ask("a:1");
    // The clock has been set back by half an hour before, and then by ten minutes.
    const std::int64_t ahead = at.time() + 600'000'000;
    at.get().command({"HSET", alive_key, "@", fmt::format("{} 1800000000", ahead)});
    at.get().command({"ZADD", order_key, fmt::format("{}", ahead + 1'800'000'000), "a:1"});
    check_refused(at.ask("b:1"), 1, 2);
    const std::string reading = at.get().command({"HGET", alive_key, "@"}).text;
    CHECK(std::stoll(reading.substr(reading.find(' '))) == 1'800'000'000 + ahead - std::stoll(reading));
    check_refused(at.ask("a:1"), 0, 2);
}

TEST_CASE("queue: a resource at which there is a key of another type counts as locked")
{
    queue_master at;
    at.get().command({"LPUSH", key, "x"});
    check_refused(at.ask("a:1"), 0, 1);
}

TEST_CASE("queue: members that no client wrote are dropped")
{
    queue_master at;
    at.lock();
    at.ask("b:1");
    at.get().command({"ZADD", order_key, "1", "not a member"});
    at.get().command({"HSET", alive_key, "not a member", "9000000000000000", "", "garbage", "@", "garbage"});
    at.expire();
    CHECK(at.ask("b:1") == 0);
    CHECK(at.has_no_queue());
}

TEST_CASE("queue: one call drops all waiters of a manager that was killed")
{
    queue_master at;
    manager b{at, "b"};
    at.lock();
    for (int each = 0; each < 1500; ++each)
    {
        at.ask(fmt::format("{}:{}", each % 2 == 0 ? "dead" : "fade", each));
    }
    at.ask("b:1");
    SECTION("by a question")
    {
        at.expire();
        CHECK(at.ask("b:1") == 0);
    }
    SECTION("by a release")
    {
        CHECK(at.release("foreign", "released") == 3);
        CHECK(at.queue() == strings{"b:1"});
        CHECK(b.messages(at) == strings{"r1"});
    }
}

TEST_CASE("queue: a manager that has lost its subscription isn't dropped with those ahead of it if it asks")
{
    queue_master at;
    at.lock();
    at.ask("dead:1");
    at.ask("dead:2");
    at.ask("dead:3");
    at.expire();
    CHECK(at.ask("dead:2") == 1);
    CHECK(at.queue() == strings{"dead:3"});
}

TEST_CASE("queue: one call drops the waiters of at most a thousand managers, the next one continues")
{
    queue_master at;
    at.lock();
    for (int each = 0; each < 1050; ++each)
    {
        at.ask(fmt::format("{:x}:1", 0x1000 + each));
    }
    at.ask("b:1");
    at.expire();
    check_refused(at.ask("b:1"), 50, 51);
    CHECK(at.ask("b:1") == 0);
}

TEST_CASE("queue: one call drops about five thousand waiters, the next one continues")
{
    queue_master at;
    at.lock();
    at.ask("b:1");
    at.get().command(
        {"EVAL",
         "for each = 1, 5200 do redis.call('zadd', KEYS[1], each, 'dead:' .. each) "
         "redis.call('hset', KEYS[2], 'dead:' .. each, '9000000000000000') end",
         "2", order_key, alive_key});
    at.expire();
    check_refused(
        at.ask("b:1"), 0, 151); // In steps of 101. Those that are left don't count as waiting ahead.
    CHECK(at.ask("b:1") == 0);
}

TEST_CASE("queue: one call drops hundreds of late waiters")
{
    queue_master at;
    at.lock();
    for (int each = 0; each < 500; ++each)
    {
        at.ask(fmt::format("dead:{}", each), {.liveness = "1"});
    }
    at.ask("b:1");
    at.let_pass_milliseconds();
    at.expire();
    CHECK(at.ask("b:1") == 0);
}

TEST_CASE("queue: a late waiter that asks isn't dropped with those ahead of it")
{
    queue_master at;
    const manager c{at, "c"};
    at.lock();
    at.ask("a:1", {.liveness = "1"});
    at.ask("b:1", {.liveness = "1"});
    at.ask("c:1");
    at.let_pass_milliseconds();
    at.expire();
    CHECK(at.ask("b:1") == 1);
}

TEST_CASE("queue: without the permission for the queue's keys a release still deletes the key")
{
    queue_master at;
    at.get().command({"ACL", "SETUSER", "old", "on", ">secret", "~invoice:*", "+@all"});
    control_client old = control_client::to_port(at.get().port());
    REQUIRE(old.command({"AUTH", "old", "secret"}) == "OK");
    at.lock();
    at.ask("a:1");
    CHECK(old.command({"EVAL", net::release_to_queue_script.text, "1", key, "foreign", an_hour}) == 1);
    CHECK(at.holder().empty());
    CHECK(old.command({"EVAL", net::ask_script.text, "1", key, "b:1", "o", an_hour, "0", an_hour, an_hour})
              .is_error());
    CHECK(at.holder().empty());
}

TEST_CASE("queue: a client that may not use one of the commands leaves no key that never expires")
{
    queue_master at;
    at.lock();
    for (const std::string_view forbidden :
         {"get", "exists", "time", "del", "pttl", "zadd", "zrem", "zrange", "zrank", "zscore", "zcard",
          "hset", "hget", "hmget", "hdel", "publish"})
    {
        CAPTURE(forbidden);
        at.get().command(
            {"ACL", "SETUSER", "curtailed", "reset", "on", ">secret", "~*", "&*", "+@all",
             fmt::format("-{}", forbidden)});
        control_client curtailed = control_client::to_port(at.get().port());
        REQUIRE(curtailed.command({"AUTH", "curtailed", "secret"}) == "OK");
        const reply asked = curtailed.command(
            {"EVAL", net::ask_script.text, "1", key, "b:1", "o", an_hour, "0", an_hour, an_hour});
        if (forbidden == "hset")
        {
            CHECK(asked.is_error());
            REQUIRE(at.get().command({"EXISTS", order_key}) == 1);
        }
        curtailed.command(
            {"EVAL", net::release_to_queue_script.text, "1", key, "o", an_hour, "lost", "c:1", "0", an_hour,
             an_hour});
        for (const std::string_view each : {order_key, alive_key})
        {
            CAPTURE(each);
            CHECK(at.get().command({"PTTL", each}) != -1);
            at.get().command({"DEL", each});
        }
    }
}

TEST_CASE("queue: a waiter whose releaser may not publish is still served")
{
    queue_master at;
    manager a{at, "a"};
    at.get().command({"ACL", "SETUSER", "mute", "on", ">secret", "~*", "+@all", "-publish"});
    control_client mute = control_client::to_port(at.get().port());
    REQUIRE(mute.command({"AUTH", "mute", "secret"}) == "OK");
    at.lock();
    at.ask("a:1");
    CHECK(mute.command({"EVAL", net::release_to_queue_script.text, "1", key, "foreign", an_hour}) == 3);
    CHECK(a.messages(at).empty());
    check_refused(at.ask("b:1"), 1, 2);
    CHECK(at.ask("a:1") == 1);
}

} // namespace redlock::test
