// SPDX-License-Identifier: BSL-1.0
// The commands of guarded mode, word by word, and the meaning of each reply.
#include "net/guard_commands.hpp"
#include "net/guard_scripts.hpp"
#include "unit/net/only_command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

using net::script_form;

const net::guard_keys group_keys{"lock:"};
constexpr std::string_view manager_id = "00112233445566778899aabbccddeeff";

class some_claim final : public net::claim
{
  public:
    some_claim()
    {
        key_ = "lock:stock";
        owner_id_.fill('a');
    }

  private:
    void recycle() noexcept override {}
};

std::string guarded_owner()
{
    return std::string(net::claim::owner_id_length, 'a');
}

command script_words(const net::script& what, script_form form, const command& rest)
{
    const bool in_full = form == script_form::text;
    command words{in_full ? "EVAL" : "EVALSHA", std::string{in_full ? what.text : what.sha1}};
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
}

/// A reply of one node, which the array keeps.
resp::reply
reply_of(std::array<resp::node, 1>& node, resp::kind kind, std::int64_t integer, std::string_view text = {})
{
    node = {resp::node{kind, 0, 0, integer, text}};
    return {node};
}

/// A reply that is an array of integers.
struct integers
{
    explicit integers(std::initializer_list<std::int64_t> values)
    {
        nodes.push_back({resp::kind::array, 0, static_cast<std::uint32_t>(values.size()), 0, {}});
        for (const std::int64_t each : values)
        {
            nodes.push_back({resp::kind::integer, 1, 0, each, {}});
        }
    }
    resp::reply reply() const { return {nodes}; }

    std::vector<resp::node> nodes;
};

} // namespace

TEST_CASE("the commands of guarded mode", "[wire][guarded]")
{
    const script_form form = GENERATE(script_form::digest, script_form::text);
    const some_claim of;
    const net::voting_terms terms{
        "a marker", 1'790'000'000'000'000, std::chrono::microseconds{1'790'000'000'000'001}};
    std::string out;
    SECTION("a vote")
    {
        net::append_guarded_set(out, of, group_keys, std::chrono::milliseconds{5000}, terms, form);
        CHECK(
            only_command(out) ==
            script_words(
                net::guarded_acquire_script, form,
                {"3", "lock:stock", "lock::redlock-guard", "lock::redlock-fence", guarded_owner(), "5000",
                 "a marker", "54", "1790000000000000", "1790000000000001"}));
    }
    SECTION("a question")
    {
        const net::question asked{
            {manager_id, 7, true},
            std::chrono::milliseconds{5000},
            std::chrono::milliseconds{10},
            std::chrono::milliseconds{3000},
            std::chrono::milliseconds{200}};
        net::append_guarded_ask(out, of, group_keys, asked, terms, form);
        CHECK(
            only_command(out) == script_words(
                                     net::guarded_ask_script, form,
                                     {"3", "lock:stock", "lock::redlock-guard", "lock::redlock-fence",
                                      std::string{manager_id} + ":7", guarded_owner(), "5000", "10", "3000",
                                      "200", "a marker", "54", "1790000000000000", "1790000000000001"}));
    }
    SECTION("a raise")
    {
        net::append_raise(out, of, group_keys, "a marker", 9'007'199'254'740'991, form);
        CHECK(
            only_command(out) == script_words(
                                     net::raise_script, form,
                                     {"3", "lock:stock", "lock::redlock-guard", "lock::redlock-fence",
                                      guarded_owner(), "a marker", "54", "9007199254740991"}));
    }
    SECTION("an extension")
    {
        net::append_guarded_extend(
            out, of, group_keys, std::chrono::milliseconds{5000}, "0123456789abcdef", form);
        CHECK(
            only_command(out) == script_words(
                                     net::guarded_extend_script, form,
                                     {"2", "lock:stock", "lock::redlock-guard", guarded_owner(), "5000",
                                      "redlock 1 0123456789abcdef "}));
    }
    SECTION("a look")
    {
        const std::vector<command> expected{
            {"GET", "lock::redlock-guard"},
            {"HGET", "lock::redlock-fence", "floor"},
            {"INFO", "replication"},
            {"GET", "lock::redlock-members"}};
        for (std::size_t at = 0; at < net::look::commands; ++at)
        {
            out.clear();
            net::look::append(out, group_keys, at);
            CHECK(only_command(out) == expected.at(at));
        }
    }
}

TEST_CASE("the vote of a master in guarded mode", "[guarded]")
{
    std::array<resp::node, 1> node{};
    core::queue_position position{};
    constexpr std::int64_t largest = 9'007'199'254'740'991;
    SECTION("a grant has its counter")
    {
        const std::int64_t counter = GENERATE(std::int64_t{1}, std::int64_t{9'007'199'254'740'991});
        const net::answer said = net::read_guarded_set(reply_of(node, resp::kind::integer, counter));
        CHECK(said.vote == vote::granted);
        CHECK(said.counter == static_cast<std::uint64_t>(counter));
        CHECK(!said.set_nothing);
        const integers pair{2, counter};
        const net::answer asked = net::read_guarded_ask(pair.reply(), position);
        CHECK(asked.vote == vote::granted);
        CHECK(asked.counter == static_cast<std::uint64_t>(counter));
        CHECK(asked.others_wait);
        const integers alone{0, counter};
        CHECK(!net::read_guarded_ask(alone.reply(), position).others_wait);
    }
    SECTION("0 is denied, and set nothing")
    {
        const net::answer said = net::read_guarded_set(reply_of(node, resp::kind::integer, 0));
        CHECK(said.vote == vote::denied);
        CHECK(said.set_nothing);
        CHECK(!net::is_guard_refusal(said));
    }
    SECTION("a place in the queue is denied")
    {
        const integers place{1, 500, 3};
        const net::answer said = net::read_guarded_ask(place.reply(), position);
        CHECK(said.vote == vote::denied);
        REQUIRE(said.position != nullptr);
        CHECK(said.position->rank == 1);
    }
    SECTION("a negative answer has its reason, and set nothing")
    {
        const auto [number, reason] = GENERATE(table<int, master_errc>(
            {{net::guard_differs, master_errc::incarnation_changed},
             {net::incarnation_differs, master_errc::incarnation_changed},
             {net::clock_is_ahead, master_errc::clock_ahead}}));
        const resp::reply reply = reply_of(node, resp::kind::integer, number);
        for (const net::answer& said :
             {net::read_guarded_set(reply), net::read_guarded_ask(reply, position), net::read_raise(reply)})
        {
            CHECK(said.vote == vote::failed);
            CHECK(said.reason == reason);
            CHECK(said.set_nothing);
            CHECK(net::is_guard_refusal(said));
        }
    }
    SECTION("a reply that can't be one")
    {
        for (const std::int64_t number : {std::int64_t{-4}, largest + 1})
        {
            const resp::reply reply = reply_of(node, resp::kind::integer, number);
            CHECK(net::read_guarded_set(reply).reason == master_errc::protocol_error);
            CHECK(net::read_guarded_ask(reply, position).reason == master_errc::protocol_error);
            CHECK(net::read_raise(reply).reason == master_errc::protocol_error);
            CHECK(net::read_guarded_extend(reply).reason == master_errc::protocol_error);
            const integers pair{0, number};
            CHECK(net::read_guarded_ask(pair.reply(), position).reason == master_errc::protocol_error);
        }
        CHECK(
            net::read_guarded_ask(reply_of(node, resp::kind::integer, 3), position).reason ==
            master_errc::protocol_error);
        const integers uncounted{0, 0};
        CHECK(net::read_guarded_ask(uncounted.reply(), position).reason == master_errc::protocol_error);
    }
    SECTION("an error of the server")
    {
        const resp::reply reply = reply_of(
            node, resp::kind::simple_error, 0, "OOM command not allowed when used memory > 'maxmemory'");
        CHECK(net::read_guarded_set(reply).reason == master_errc::out_of_memory);
        CHECK(net::read_guarded_ask(reply, position).reason == master_errc::out_of_memory);
        CHECK(!net::read_guarded_set(reply).set_nothing);
    }
}

TEST_CASE("the answer to a raise and to an extension in guarded mode", "[guarded]")
{
    std::array<resp::node, 1> node{};
    CHECK(net::read_raise(reply_of(node, resp::kind::integer, 1)).vote == vote::granted);
    CHECK(net::read_raise(reply_of(node, resp::kind::integer, 0)).vote == vote::denied);
    CHECK(net::read_guarded_extend(reply_of(node, resp::kind::integer, 1)).vote == vote::granted);
    CHECK(net::read_guarded_extend(reply_of(node, resp::kind::integer, 0)).vote == vote::denied);
    const net::answer other =
        net::read_guarded_extend(reply_of(node, resp::kind::integer, net::guard_differs));
    CHECK(other.vote == vote::failed);
    CHECK(other.reason == master_errc::other_group);
}

TEST_CASE("a look takes four replies", "[guarded]")
{
    std::array<resp::node, 1> node{};
    net::look seen;
    const auto text = [&](std::string_view value)
    { return reply_of(node, resp::kind::bulk_string, 0, value); };
    const auto nothing = [&] { return reply_of(node, resp::kind::null, 0); };
    constexpr std::string_view replication = "# Replication\r\nrole:master\r\nmaster_replid:0011\r\n";
    SECTION("of an armed master")
    {
        CHECK(seen.take(text("a marker")));
        CHECK(seen.take(text("1000")));
        CHECK(seen.take(text(replication)));
        CHECK(!seen.is_complete());
        CHECK(seen.take(text("the record")));
        CHECK(seen.is_complete());
        CHECK(!seen.reason());
        CHECK(seen.seen().marker == "a marker");
        CHECK(seen.seen().has_floor);
        CHECK(seen.seen().is_master);
        CHECK(seen.seen().replication_id == "0011");
        CHECK(seen.members() == "the record");
    }
    SECTION("of an empty replica")
    {
        CHECK(seen.take(nothing()));
        CHECK(seen.take(nothing()));
        CHECK(seen.take(text("role:slave\r\nmaster_replid:0011\r\n")));
        CHECK(seen.take(nothing()));
        CHECK(!seen.reason());
        CHECK(!seen.seen().marker);
        CHECK(!seen.seen().has_floor);
        CHECK(!seen.seen().is_master);
        CHECK(seen.members().empty());
    }
    SECTION("of which the last command was not sent")
    {
        seen.take_failure(net::make_failed_vote(vote::unsent, master_errc::write_queue_full));
        CHECK(seen.take(text("a marker")));
        CHECK(seen.take(text("1000")));
        CHECK(!seen.is_complete());
        CHECK(seen.take(text(replication)));
        CHECK(seen.is_complete());
        CHECK(seen.reason() == master_errc::write_queue_full);
    }
    SECTION("of keys of other types")
    {
        const auto foreign = [&]
        {
            return reply_of(
                node, resp::kind::simple_error, 0,
                "WRONGTYPE Operation against a key holding the wrong kind of value");
        };
        CHECK(seen.take(foreign()));
        CHECK(seen.take(foreign()));
        CHECK(seen.take(text(replication)));
        CHECK(seen.take(foreign()));
        CHECK(!seen.reason());
        CHECK(seen.seen().marker == ""); // There, and none.
        CHECK(!seen.seen().has_floor);
        CHECK(seen.members().empty());
    }
    SECTION("of which one is refused")
    {
        CHECK(seen.take(text("a marker")));
        CHECK(seen.take(reply_of(node, resp::kind::simple_error, 0, "NOPERM no permission for 'hget'")));
        CHECK(seen.take(reply_of(node, resp::kind::simple_error, 0, "ERR another reason")));
        CHECK(seen.take(nothing()));
        CHECK(seen.reason() == master_errc::no_permission);
        CHECK(seen.detail() == "NOPERM no permission for 'hget'");
    }
    SECTION("of which one can't be sent")
    {
        CHECK(seen.take(text("a marker")));
        for (int left = 0; left < 3; ++left)
        {
            seen.take_failure(net::make_failed_vote(vote::failed, master_errc::connection_lost));
        }
        CHECK(seen.is_complete());
        CHECK(seen.reason() == master_errc::connection_lost);
    }
    SECTION("a reply that can't be one")
    {
        CHECK(!seen.take(reply_of(node, resp::kind::integer, 1)));
        CHECK(!seen.take(reply_of(node, resp::kind::integer, 1)));
        CHECK(!seen.take(nothing()));
        CHECK(!seen.take(reply_of(node, resp::kind::integer, 1)));
    }
}

} // namespace redlock::test
