// SPDX-License-Identifier: BSL-1.0
// Scripts of all kinds, and the commands that they call, at a simulated master and at a real one.
#include "both_masters.hpp"
#include "vocabulary.hpp"

#include <catch2/catch_test_macros.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test
{

namespace
{

/// Both masters, and one connection.
class comparison
{
  public:
    explicit comparison(bool resp3)
    {
        masters_.settle();
        if (resp3)
        {
            check({"HELLO", "3"});
        }
    }

    void check(const command& words)
    {
        INFO(words.size() << " words, the second is " << (words.size() > 1 ? words[1] : ""));
        client_->send(as_bytes(words));
        masters_.settle();
        client_->settle();
        CHECK(client_->difference() == "");
    }
    void check_script(std::string_view text) { check({"EVAL", std::string{text}, "1", "key", "argument"}); }

  private:
    both_masters masters_;
    std::unique_ptr<both_connection> client_ = masters_.connect();
};

void compare_scripts(bool resp3, const std::vector<std::string_view>& scripts)
{
    comparison both{resp3};
    for (const std::string_view each : scripts)
    {
        both.check_script(each);
    }
}

const std::vector<std::string_view> values{
    "return 1",
    "return -3.7",
    "return 2^60",
    "return math.huge",
    "return 0/0",
    "return 'a\\r\\nb'",
    "return true",
    "return false",
    "return nil",
    "return",
    "return {}",
    "return {1, 2.9, nil, 4}",
    "return {1, 'a', {ok = 'x'}, {err = 'E\\r\\nF'}, true, false, {2, {3}}}",
    "return {err = 1}",
    "return {ok = 1}",
    "return redis.call",
    "return KEYS[1] .. ARGV[1] .. tostring(KEYS[2])",
    "KEYS[1] = 5 return KEYS[1]",
    "return string.format('%.0f', 1763733297123456) .. tonumber('0x10')",
    "return redis.error_reply('My error')",
    "return redis.error_reply('-OTHER error')",
    "return redis.error_reply('My')",
    "return redis.error_reply()",
    "return redis.status_reply('FINE')",
    "return redis.status_reply(1)",
    "return redis.sha1hex('')",
    "return {pcall(error, 'text')}",
    "return {pcall(redis.call, 'LOCK')}",
};

const std::vector<std::string_view> errors{
    "syntax error",
    "error('text')",
    "error({err = 'MY table'})",
    "\nlocal a\nreturn a.b",
    "x = 1",
    "ARGV = 1",
    "string.x = 1",
    "redis.x = 1",
    "return y",
    "return print",
    "return redis.sha1hex()",
    "return redis.call()",
    "return redis.call('LOCK')",
    "return redis.call('get')",
    "return redis.call('get', {})",
    "return redis.call('get', nil)",
    "return redis.call('client', 'id')",
    "return redis.call('eval', 'return 1', '0')",
    "return redis.call('hello', '3')",
    "return redis.call('set', 'a', 'b', 'px', '0')",
    "return redis.pcall('get')",
    "return redis.pcall('get').err",
    "local function f() return redis.call('get') end\n\nf()\nreturn 1",
    "redis.call('set', 'before', '1')\nerror('text')",
    "return redis.call('get', 'before')",
};

const std::vector<std::string_view> calls{
    "return redis.call('get', KEYS[1])",
    "return redis.call('set', KEYS[1], 1/3, 'px', 1000000, 'nx')",
    "return redis.call('set', KEYS[1], 1, 'px', 1000000, 'nx')",
    "return type(redis.call('set', KEYS[1], 1, 'px', 1000000, 'nx'))",
    "return redis.call('set', KEYS[1], 1, 'px', 'x')",
    "return redis.call('get', KEYS[1])",
    "return redis.call('zadd', KEYS[1], 1, 'a')",
    "return redis.pcall('hset', KEYS[1], 'a', 1)",
    "return redis.call('zadd', 'z', 1.5, 'a', 1763733297123456, 'b')",
    "return redis.call('zscore', 'z', 'b') .. redis.call('zscore', 'z', 'a')",
    "return redis.call('zscore', 'z', 'c')",
    "return {redis.call('zrank', 'z', 'b'), redis.call('zrank', 'z', 'c'), redis.call('zcard', 'z')}",
    "return redis.call('zrange', 'z', 0, 0)[1]",
    "return type(redis.call('zrange', 'none', 0, 0)[1])",
    "return redis.call('hset', 'h', '', 'empty', '@', 2^53)",
    "return redis.call('hmget', 'h', '@', 'none', '')",
    "return type(redis.call('hmget', 'h', 'none')[1])",
    "return redis.call('info', 'nothing')",
    "return redis.call('select', 0)",
};

} // namespace

TEST_CASE("a simulated master converts the values of scripts as a real one", "[own-servers]")
{
    compare_scripts(false, values);
    compare_scripts(true, values);
}

TEST_CASE("a simulated master reports the errors of scripts as a real one", "[own-servers]")
{
    compare_scripts(false, errors);
}

TEST_CASE("a simulated master executes the commands of scripts as a real one", "[own-servers]")
{
    compare_scripts(false, calls);
    compare_scripts(true, calls);
}

TEST_CASE("a simulated master executes commands on sorted sets and hashes as a real one", "[own-servers]")
{
    comparison both{true};
    for (const command& each : std::initializer_list<command>{
             {"ZADD", "z", "1.5", "m"},
             {"ZADD", "z", "NX", "2", "m"},
             {"ZADD", "z", "nx", "2", "n", "2", "l"},
             {"ZADD", "z", "x", "m"},
             {"ZADD", "z", "1"},
             {"ZADD", "z", "NX", "1"},
             {"ZADD", "z", "1", "a", "2"},
             {"ZADD", "z", "nan", "a"},
             {"ZADD", "z", "inf", "i"},
             {"ZSCORE", "z", "i"},
             {"ZREM", "z", "i", "q"},
             {"ZSCORE", "z", "m"},
             {"ZSCORE", "z", "none"},
             {"ZRANGE", "z", "0", "-1"},
             {"ZRANGE", "z", "-2", "-1"},
             {"ZRANGE", "z", "5", "9"},
             {"ZRANGE", "z", "x", "1"},
             {"ZRANGE", "z", "0", "0", "BYX"},
             {"ZRANGE", "none", "0", "0"},
             {"ZRANK", "z", "n"},
             {"ZRANK", "none", "none"},
             {"ZCARD", "z"},
             {"ZCARD", "none"},
             {"HSET", "h", "a", "1"},
             {"HSET", "h", "a", "2", "b", "3"},
             {"HSET", "h", "a"},
             {"HSET", "h", "a", "1", "b"},
             {"HGET", "h", "a"},
             {"HMGET", "h", "a", "none"},
             {"HMGET", "none", "a"},
             {"HLEN", "h"},
             {"HDEL", "h", "a", "none"},
             {"HDEL", "h", "b"},
             {"HDEL", "h", "b"},
             {"EXISTS", "h", "z", "z"},
             {"HSET", "h", "a", "1"},
             {"GET", "h"},
             {"ZCARD", "h"},
             {"ZADD", "h", "1", "m"},
             {"ZADD", "h", "x", "m"},
             {"ZRANGE", "h", "x", "1"},
             {"ZREM", "h", "m"},
             {"HGET", "z", "a"},
             {"SET", "h", "1", "NX"},
             {"SET", "h", "1"},
             {"HLEN", "h"},
             {"PTTL", "h"},
             {"PTTL", "none"},
             {"PEXPIRE", "none", "5"},
             {"PEXPIRE", "none", "x"},
             {"PEXPIRE", "h", "9223372036854775807"},
             {"PEXPIRE", "h", "1000000"},
             {"PEXPIRE", "h", "-1"},
             {"DEL", "h", "z", "z"}})
    {
        both.check(each);
    }
}

TEST_CASE("a simulated master knows scripts by their digests as a real one", "[own-servers]")
{
    comparison both{false};
    const std::string digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"; // Of "return 1".
    both.check({"EVALSHA", digest, "0"});
    both.check({"EVAL", "return 1", "0"});
    both.check({"EVALSHA", digest, "0"});
    both.check({"EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"});
    both.check({"SCRIPT", "FLUSH"});
    both.check({"EVALSHA", digest, "0"});
    both.check({"SCRIPT", "LOAD", "return 1"});
    both.check({"EVALSHA", digest, "0"});
    both.check({"SCRIPT", "LOAD", "syntax error"});
}

} // namespace redlock::test
