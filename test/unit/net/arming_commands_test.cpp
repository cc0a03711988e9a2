// SPDX-License-Identifier: BSL-1.0
// The commands of quarantine and arming, word by word, and the meaning of each reply.
#include "net/arming_commands.hpp"
#include "net/arming_scripts.hpp"
#include "unit/net/only_command.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::test
{

namespace
{

using net::script_form;

const net::guard_keys arming_keys{"lock:"};
constexpr std::string_view waited_for = "redlock 1 0123456789abcdef 2 3 60000 clocks quarantine new "
                                        "fedcba9876543210 00112233445566778899aabbccddeeff00112233";
constexpr std::string_view armed = "redlock 1 0123456789abcdef 2 3 60000 clocks armed new "
                                   "fedcba9876543210 00112233445566778899aabbccddeeff00112233";
constexpr std::string_view record = "0123456789abcdef 1=redis://a:1 2=redis://b:1 3=redis://c:1";

core::marker begun()
{
    return core::parse_marker(waited_for).value();
}

/// The words of a script's command with the keys of the guarded mode.
command script_words(const net::script& what, script_form form, command arguments)
{
    const bool in_full = form == script_form::text;
    command words{
        in_full ? "EVAL" : "EVALSHA",
        std::string{in_full ? what.text : what.sha1},
        "3",
        "lock::redlock-members",
        "lock::redlock-guard",
        "lock::redlock-fence"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

/// A reply of one node.
resp::reply
reply_of(std::array<resp::node, 1>& node, resp::kind kind, std::int64_t integer, std::string_view text)
{
    node = {resp::node{kind, 0, 0, integer, text}};
    return {node};
}

} // namespace

TEST_CASE("the commands of quarantine and arming", "[wire][guarded]")
{
    const script_form form = GENERATE(script_form::digest, script_form::text);
    std::string out;
    SECTION("a quarantine")
    {
        net::append_quarantine(
            out, arming_keys, "seen", begun(), 7, core::parse_members(record).value(), form);
        CHECK(
            only_command(out) ==
            script_words(
                net::quarantine_script, form, {"seen", std::string{waited_for}, "7", std::string{record}}));
    }
    SECTION("the largest counter")
    {
        net::append_largest_counter(out, arming_keys, armed, form);
        CHECK(only_command(out) == script_words(net::largest_counter_script, form, {std::string{armed}}));
    }
    SECTION("arming")
    {
        net::append_arm(
            out, arming_keys, begun(), 9'007'199'254'740'991, core::parse_members(record).value(), form);
        CHECK(
            only_command(out) ==
            script_words(
                net::arm_script, form,
                {std::string{waited_for}, std::string{armed}, "9007199254740991", std::string{record}}));
    }
}

TEST_CASE("the reply to a quarantine is the marker that the master has", "[guarded]")
{
    std::array<resp::node, 1> node{};
    const std::string_view text = GENERATE(waited_for, std::string_view{});
    const net::arming_reply found = net::read_quarantine(reply_of(node, resp::kind::bulk_string, 0, text));
    CHECK(!found.reason);
    CHECK(found.marker == text);
}

TEST_CASE("the reply to arming and to a look at the counters is a counter", "[guarded]")
{
    std::array<resp::node, 1> node{};
    const std::int64_t counter =
        GENERATE(std::int64_t{0}, std::int64_t{1}, std::int64_t{9'007'199'254'740'991});
    const net::arming_reply found = net::read_counter(reply_of(node, resp::kind::integer, counter, {}));
    CHECK(!found.reason);
    CHECK(found.counter == static_cast<std::uint64_t>(counter));
}

TEST_CASE("refusals of quarantine and arming have a reason", "[guarded]")
{
    const auto read = GENERATE(&net::read_quarantine, &net::read_counter);
    std::array<resp::node, 1> node{};
    SECTION("negative answers")
    {
        const int answer = GENERATE(net::guard_differs, net::incarnation_differs);
        const net::arming_reply found = read(reply_of(node, resp::kind::integer, answer, {}));
        CHECK(found.reason == master_errc::incarnation_changed);
        CHECK(found.refusal == answer);
    }
    SECTION("an error of the server")
    {
        const net::arming_reply found =
            read(reply_of(node, resp::kind::simple_error, 0, "NOPERM this user has no permissions"));
        CHECK(found.reason == master_errc::no_permission);
        CHECK(found.error == core::server_error::no_permission);
        CHECK(found.detail == "NOPERM this user has no permissions");
        CHECK(found.refusal == 0);
    }
    SECTION("another reply")
    {
        const auto [kind, number] = GENERATE(table<resp::kind, std::int64_t>(
            {{resp::kind::integer, -5},
             {resp::kind::integer, std::int64_t{1} << 53},
             {resp::kind::null, 0},
             {resp::kind::simple_string, 0}}));
        const net::arming_reply found = read(reply_of(node, kind, number, {}));
        CHECK(found.reason == master_errc::protocol_error);
        CHECK(found.refusal == 0);
    }
}

TEST_CASE("only a quarantine fails because of other databases", "[guarded]")
{
    std::array<resp::node, 1> node{};
    const resp::reply reply = reply_of(node, resp::kind::integer, net::databases_unknown, {});
    CHECK(net::read_quarantine(reply).reason == master_errc::command_failed);
    CHECK(net::read_quarantine(reply).refusal == net::databases_unknown);
    CHECK(net::read_counter(reply).reason == master_errc::protocol_error);
    CHECK(net::read_counter(reply).refusal == 0);
}

TEST_CASE("only arming fails because keys may be evicted", "[guarded]")
{
    std::array<resp::node, 1> node{};
    const resp::reply reply = reply_of(node, resp::kind::integer, net::may_evict, {});
    CHECK(net::read_counter(reply).reason == master_errc::command_failed);
    CHECK(net::read_counter(reply).refusal == net::may_evict);
    CHECK(net::read_quarantine(reply).reason == master_errc::protocol_error);
    CHECK(net::read_quarantine(reply).refusal == 0);
}

} // namespace redlock::test
