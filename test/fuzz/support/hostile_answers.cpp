// SPDX-License-Identifier: BSL-1.0
// What a hostile master answers: what is right, or anything else.
#include "fuzz_master.hpp"

#include "net/command.hpp"
#include "net/queue_scripts.hpp"
#include "simulation/command_arguments.hpp"
#include "simulation/lua_scripts.hpp"
#include "simulation/store_commands.hpp"
#include "support/fake_replies.hpp"

#include <boost/asio/error.hpp>

#include <array>
#include <functional>

namespace redlock::test
{

namespace asio = boost::asio;

namespace
{

// Every row of the table of replies, and some that aren't in it.
constexpr std::array<std::string_view, 42> wrong_ones{
    "+OK\r\n",
    "$-1\r\n",
    "_\r\n",
    ":1\r\n",
    ":0\r\n",
    ":2\r\n",
    "-NOSCRIPT No matching script. Please use EVAL.\r\n",
    "-LOADING \x1b[2J\x01\xff\r\n",
    "-BUSY Redis is busy running a script.\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-MASTERDOWN Link with MASTER is down\r\n",
    "-NOREPLICAS Not enough good replicas to write.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-WRONGPASS invalid username-password pair\r\n",
    "-NOPERM this user has no permissions\r\n",
    "-ERR max number of clients reached\r\n",
    "-MOVED 3999 127.0.0.1:6381\r\n",
    "-ASK 3999 127.0.0.1:6381\r\n",
    "-CLUSTERDOWN The cluster is down\r\n",
    "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
    "-WRONGTYPE \x07 against a key\r\n",
    "-ERR unknown command\r\n",
    "-NOPROTO sorry\r\n",
    "-\r\n",
    "!9\r\nERR other\r\n",
    "$2\r\nOK\r\n",
    "*0\r\n",
    "+QUEUED\r\n",
    "*2\r\n$1\r\n7\r\n$3\r\n123\r\n",
    "*2\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n:5000\r\n",
    "*2\r\n$-1\r\n:-2\r\n",
    "%1\r\n$2\r\nid\r\n:7\r\n",
    "%2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
    "$29\r\nrun_id:abc\r\nredis_version:5.0\r\n\r\n",
    "-ERR you sent \x1b]0;S3same0pen\x07 S3same0p\r\n", // With the password of the scene.
    "$51\r\nrun_id:\x1b[2JS3same0pen\r\nredis_version:5.S3same0pen\r\n\r\n",
    "HTTP/1.1 400 Bad Request\r\n",
    "*4294967295\r\n",
    "|1\r\n+a\r\n+b\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"};

// Replies to a question of the wait queue.
constexpr std::array<std::string_view, 24> wrong_to_questions{
    "*3\r\n:0\r\n:100\r\n:1\r\n",
    "*3\r\n:0\r\n:0\r\n:1\r\n",
    "*3\r\n:0\r\n:-1\r\n:2\r\n",
    "*3\r\n:0\r\n:-2\r\n:1\r\n",
    "*3\r\n:-1\r\n:-2\r\n:0\r\n",
    "*3\r\n:-1\r\n:5000\r\n:7\r\n",
    "*3\r\n:63\r\n:20\r\n:64\r\n",
    "*3\r\n:9223372036854775806\r\n:9223372036854775807\r\n:9223372036854775807\r\n",
    "*3\r\n:0\r\n:9223372036854775807\r\n:9223372036854775807\r\n",
    "*3\r\n:4294967295\r\n:-9223372036854775808\r\n:4294967296\r\n",
    "*3\r\n:-9223372036854775808\r\n:100\r\n:1\r\n",
    "*3\r\n:-2\r\n:100\r\n:1\r\n",
    "*3\r\n:3\r\n:100\r\n:3\r\n",
    "*3\r\n:0\r\n:100\r\n:0\r\n",
    "*3\r\n:0\r\n:100\r\n:-1\r\n",
    "*3\r\n$1\r\n0\r\n:100\r\n:1\r\n",
    "*3\r\n:0\r\n_\r\n:1\r\n",
    "~3\r\n:0\r\n:100\r\n:1\r\n",
    "*2\r\n:0\r\n:100\r\n",
    "*4\r\n:0\r\n:100\r\n:1\r\n:1\r\n",
    "*2\r\n*1\r\n:0\r\n:1\r\n",
    ":9223372036854775807\r\n",
    ":-1\r\n",
    ":0\r\n"};

// Payloads of messages, some of which no master publishes.
constexpr std::array<std::string_view, 24> payloads{
    "r1", "k1", "r2",  "k2",         "r3",     "k3",     "r4",  "k5",
    "r0", "k0", "r-1", "r999",       "k12345", "k+1",    "r01", "r18446744073709551615",
    "r",  "k",  "",    "subscribed", "r1 ",    "r1\r\n", "R1",  "k18446744073709551616"};
constexpr std::size_t flood = 16; // Messages that end the connection.

constexpr std::size_t very_long = 70'000; // More than any reply may have.

std::string push_of(std::string_view type, std::string_view channel, std::string_view third)
{
    return ">3\r\n" + bulk(type) + bulk(channel) + std::string{third};
}

std::string repeated(const std::string& bytes, std::size_t times)
{
    std::string all;
    for (std::size_t left = times; left > 0; --left)
    {
        all += bytes;
    }
    return all;
}

/// Returns the digest of a script of the library; another text gets another digest.
std::string digest_of(const std::string& text)
{
    for (const net::script& each :
         {net::extend_script, net::release_script, net::ask_script, net::release_to_queue_script})
    {
        if (each.text == text)
        {
            return std::string{each.sha1};
        }
    }
    return std::to_string(std::hash<std::string>{}(text));
}

} // namespace

void fuzz_master::answer(const command& words)
{
    const bool greets = !votes_ && name_of(words) != "SET" && !name_of(words).starts_with("EVAL");
    // Even a wrong answer to HELLO may be one of RESP3.
    protocol_ = name_of(words) == "HELLO" ? 3 : protocol_;
    const bool asks_input = is_hostile && !(greets && greets_well);
    send(asks_input ? wrong_answer(words) : honest_answer(words));
}

/// The first decision is what kind of answer it is. Half of the kinds are right answers, so that a run gets somewhere.
std::string fuzz_master::wrong_answer(const command& words)
{
    const std::uint8_t kind = input_.byte();
    if (kind < 96)
    {
        return honest_answer(words);
    }
    if (std::string special = wrong_of_its_kind(words, kind); !special.empty())
    {
        return special;
    }
    if (kind < 192)
    {
        return std::string{wrong_ones[kind % wrong_ones.size()]};
    }
    switch (kind % 11)
    {
    case 0: // Nothing at all.
        return {};
    case 1: // Twice.
        return honest_answer(words) + honest_answer(words);
    case 2: // With a push or an attribute ahead of it, or with a push after it.
        switch (input_.below(4))
        {
        case 0:
            return ">2\r\n+invalidate\r\n*0\r\n" + honest_answer(words);
        case 1:
            return "|1\r\n+ttl\r\n:5\r\n" + honest_answer(words);
        case 2:
            return hostile_push() + honest_answer(words);
        default:
            return honest_answer(words) + hostile_push();
        }
    case 3: // Any bytes.
        return input_.text(64);
    case 4: // It closes the connection after its answer.
        send(honest_answer(words));
        end(asio::error::eof);
        return {};
    case 5: // Or in front of it, though it has done what was asked.
        honest_answer(words);
        end(asio::error::connection_reset);
        return {};
    case 6: // Its answer is cut off, and something else follows.
    {
        const std::string right = honest_answer(words);
        return right.substr(0, input_.below(right.size())) + input_.text(16);
    }
    case 7: // One that never ends.
        return (input_.below(2) == 0 ? "+" : "$60000\r\n") + std::string(very_long, 'x');
    case 8: // The next ones come late.
        delay = std::chrono::milliseconds{input_.byte()};
        return honest_answer(words);
    case 9: // It repeats what it was sent, as servers do with what they don't know.
        return "-ERR unknown command '" + words.front() + "', with args beginning with: " + words.back() +
               "\r\n";
    default: // A right one of the wrong kind.
        return std::string{input_.one_of(wrong_ones)} + honest_answer(words);
    }
}

/// Half of the wrong replies to a command of the wait queue are of its kind. Empty for another one.
std::string fuzz_master::wrong_of_its_kind(const command& words, std::uint8_t which) const
{
    constexpr std::uint8_t first = 144;
    constexpr std::uint8_t last = 191;
    const std::string name = name_of(words);
    if (which < first || which > last)
    {
        return {};
    }
    if (name.starts_with("EVAL") && (words[1] == net::ask_script.sha1 || words[1] == net::ask_script.text))
    {
        return std::string{wrong_to_questions[which % wrong_to_questions.size()]};
    }
    if (name == "SUBSCRIBE")
    {
        const std::string right = push_of("subscribe", words[1], number(1));
        const std::array<std::string, 8> all{
            right + right,
            push_of("subscribe", "redlock:another", number(1)),
            push_of("subscribe", words[1], number(0)),
            push_of("unsubscribe", words[1], number(0)),
            "-NOPERM no channel\r\n" + right,
            right + "-NOPERM no channel\r\n",
            right + repeated(message("subscribed"), flood),
            "*3\r\n" + bulk("subscribe") + bulk(words[1]) + number(1)};
        return all[which % all.size()];
    }
    if (name == "PUBLISH")
    {
        const std::array<std::string, 6> all{
            number(0),
            number(1), // Without the message.
            number(2) + message(words[2]),
            number(-1),
            message(words[2]) + message(words[2]) + number(1),
            "-NOPERM no channel\r\n"};
        return all[which % all.size()];
    }
    return {};
}

std::string fuzz_master::message(std::string_view payload) const
{
    return push_of("message", subscribed_.empty() ? seen_.channel() : subscribed_, bulk(payload));
}

std::string fuzz_master::hostile_push()
{
    const std::uint8_t which = input_.byte();
    const std::string channel = seen_.channel();
    if (which < 128)
    {
        return message(payloads[which % payloads.size()]);
    }
    switch (which % 8)
    {
    case 0:
        return repeated(message(payloads[input_.below(payloads.size())]), flood);
    case 1: // One short of a flood.
        return repeated(message("r0"), flood - 1);
    case 2:
        return push_of("subscribe", channel, number(1));
    case 3:
        return message("subscribed");
    case 4:
        return ">3\r\n" + bulk("message") + bulk("redlock:another") + bulk("r1");
    case 5:
        return ">4\r\n" + bulk("pmessage") + bulk("*") + bulk(channel) + bulk("r1");
    case 6:
        return push_of("message", channel, "*1\r\n" + bulk("r1"));
    default:
        return message(input_.text(24));
    }
}

void fuzz_master::send_pushes()
{
    std::string bytes;
    for (std::size_t left = 1 + input_.below(4); left > 0; --left)
    {
        bytes += hostile_push();
    }
    send(std::move(bytes));
}

std::string fuzz_master::greeting(const command& words)
{
    const std::string name = name_of(words);
    if (name == "HELLO")
    {
        return "%4\r\n" + bulk("server") + bulk("redis") + bulk("id") +
               number(static_cast<std::int64_t>(connection_)) + bulk("mode") + bulk("standalone") +
               bulk("role") + bulk("master");
    }
    if (name == "INFO")
    {
        const std::string text = words.back() == "memory"
                                     ? "# Memory\r\nmaxmemory_policy:noeviction\r\n"
                                     : "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
                                       "run_id:run-of-" +
                                           std::to_string(index_) + "\r\nrole:master\r\n";
        return bulk(text);
    }
    if (name == "SCRIPT")
    {
        const std::string digest = digest_of(words[2]);
        scripts_[digest] = words[2];
        return bulk(digest);
    }
    if (name == "CLIENT" && words.size() > 1 && words[1] != "SETNAME")
    {
        return number(words[1] == "ID" ? static_cast<std::int64_t>(connection_) : 0);
    }
    return "+OK\r\n";
}

std::string fuzz_master::honest_answer(const command& words)
{
    const std::string name = name_of(words);
    if (name == "TIME" || name == "SET")
    {
        return run_on(keys_, words)->bytes(protocol_);
    }
    if (name == "CONFIG")
    {
        return "%0\r\n";
    }
    if (name == "SUBSCRIBE")
    {
        return subscribe(words);
    }
    if (name == "PUBLISH")
    {
        std::string messages;
        const std::int64_t receivers = publish(words, messages);
        return messages + number(receivers);
    }
    return name == "EVAL" || name == "EVALSHA" ? script_answer(words) : greeting(words);
}

std::string fuzz_master::subscribe(const command& words)
{
    subscribed_ = words[1];
    return push_of("subscribe", subscribed_, number(1));
}

/// Messages are sent ahead of the reply to the command that has published them.
std::int64_t fuzz_master::publish(const command& words, std::string& messages) const
{
    if (words[1] != subscribed_)
    {
        return 0;
    }
    messages += message(words[2]);
    return 1;
}

std::string fuzz_master::script_answer(const command& words)
{
    const bool by_digest = name_of(words) == "EVALSHA";
    const std::string digest = by_digest ? words[1] : digest_of(words[1]);
    if (by_digest && !scripts_.contains(digest))
    {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    scripts_.try_emplace(digest, words[1]);
    const script_arguments given{words};
    std::string messages;
    const auto run = [&](const command& inner) { return run_for_script(inner, messages); };
    const reply_value result = run_script({scripts_[digest], digest, given.keys, given.arguments, run});
    return messages + result.bytes(protocol_);
}

reply_value fuzz_master::run_for_script(const command& words, std::string& messages)
{
    if (name_of(words) == "PUBLISH")
    {
        return reply_value::integer(publish(words, messages));
    }
    return run_on(keys_, words).value_or(reply_value::error("ERR Unknown Redis command called from script"));
}

} // namespace redlock::test
