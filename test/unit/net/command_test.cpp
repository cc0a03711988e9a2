// SPDX-License-Identifier: BSL-1.0
// The commands on the wire, word by word: clients of different versions, and those of other libraries, rely on them.
#include "net/command.hpp"
#include "net/queue_commands.hpp"
#include "net/queue_scripts.hpp"
#include "unit/net/only_command.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace redlock::test
{

namespace
{

using namespace std::chrono_literals;
using net::script_form;

class named_claim final : public net::claim
{
  public:
    named_claim()
    {
        key_ = "lock:stock";
        owner_id_.fill('0');
    }

  private:
    void recycle() noexcept override {}
};

const std::string owner(net::claim::owner_id_length, '0');

/// Each argument has a value of its own, so that none can be exchanged for another one.
constexpr net::question asked{{"abc", 7, true}, 11ms, 22ms, 33ms, 44ms};

std::string text_of(const net::script& of)
{
    return std::string{of.text};
}

std::string digest_of(const net::script& of)
{
    return std::string{of.sha1};
}

} // namespace

TEST_CASE("the commands of a lock without a queue", "[wire]")
{
    const named_claim of;
    std::string out;
    SECTION("SET")
    {
        append_set(out, of, 11ms);
        CHECK(only_command(out) == command{"SET", "lock:stock", owner, "NX", "PX", "11"});
    }
    SECTION("an extension")
    {
        append_extend(out, of, 11ms, script_form::digest);
        CHECK(
            only_command(out) ==
            command{"EVALSHA", digest_of(net::extend_script), "1", "lock:stock", owner, "11"});
    }
    SECTION("an extension in full")
    {
        append_extend(out, of, 11ms, script_form::text);
        CHECK(
            only_command(out) ==
            command{"EVAL", text_of(net::extend_script), "1", "lock:stock", owner, "11"});
    }
    SECTION("a release")
    {
        append_release(out, of, script_form::digest);
        CHECK(
            only_command(out) ==
            command{"EVALSHA", digest_of(net::release_script), "1", "lock:stock", owner});
    }
    SECTION("a release in full")
    {
        append_release(out, of, script_form::text);
        CHECK(only_command(out) == command{"EVAL", text_of(net::release_script), "1", "lock:stock", owner});
    }
    SECTION("an inspection")
    {
        net::append_inspect(out, "lock:stock");
        CHECK(only_command(out) == command{"EVAL", std::string{net::inspect_script}, "1", "lock:stock"});
    }
}

TEST_CASE("the question to a queue master", "[wire][queue]")
{
    const named_claim of;
    std::string out;
    SECTION("by its digest")
    {
        append_ask(out, of, asked, script_form::digest);
        CHECK(
            only_command(out) == command{
                                     "EVALSHA", digest_of(net::ask_script), "1", "lock:stock", "abc:7", owner,
                                     "11", "22", "33", "44"});
    }
    SECTION("in full")
    {
        append_ask(out, of, asked, script_form::text);
        CHECK(
            only_command(out) ==
            command{
                "EVAL", text_of(net::ask_script), "1", "lock:stock", "abc:7", owner, "11", "22", "33", "44"});
    }
    SECTION("of a client that receives no messages")
    {
        net::question without = asked;
        without.member.receives = false;
        append_ask(out, of, without, script_form::digest);
        CHECK(only_command(out)[4] == "-abc:7");
    }
}

TEST_CASE("the releases at a queue master", "[wire][queue]")
{
    const named_claim of;
    const std::string digest = digest_of(net::release_to_queue_script);
    const std::string text = text_of(net::release_to_queue_script);
    std::string out;
    SECTION("of a lease")
    {
        append_queue_release(out, of, 44ms, script_form::digest);
        CHECK(only_command(out) == command{"EVALSHA", digest, "1", "lock:stock", owner, "44"});
    }
    SECTION("of a lease, in full")
    {
        append_queue_release(out, of, 44ms, script_form::text);
        CHECK(only_command(out) == command{"EVAL", text, "1", "lock:stock", owner, "44"});
    }
    SECTION("of a client that leaves")
    {
        append_leave(out, of, 44ms, asked.member);
        CHECK(
            only_command(out) == command{"EVALSHA", digest, "1", "lock:stock", owner, "44", "left", "abc:7"});
    }
    SECTION("of a client that was in no queue, in full")
    {
        append_leave(out, of, 44ms, {}, script_form::text);
        CHECK(only_command(out) == command{"EVAL", text, "1", "lock:stock", owner, "44", "left", ""});
    }
    SECTION("of a client that keeps its position")
    {
        append_lost_release(out, of, asked, 55ms);
        CHECK(
            only_command(out) ==
            command{"EVALSHA", digest, "1", "lock:stock", owner, "44", "lost", "abc:7", "22", "33", "55"});
    }
}

} // namespace redlock::test
