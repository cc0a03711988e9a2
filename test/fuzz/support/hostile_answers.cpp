// SPDX-License-Identifier: BSL-1.0
// What a hostile master answers: what is right, or anything else.
#include "fuzz_master.hpp"

#include "net/command.hpp"

#include <boost/asio/error.hpp>

#include <array>
#include <chrono>
#include <cstdlib>

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

constexpr std::size_t very_long = 70'000; // More than any reply may have.

std::string bulk(std::string_view value)
{
    return '$' + std::to_string(value.size()) + "\r\n" + std::string{value} + "\r\n";
}

std::string number(std::int64_t value)
{
    return ':' + std::to_string(value) + "\r\n";
}

std::int64_t number_in(const std::string& word)
{
    return std::strtoll(word.c_str(), nullptr, 10);
}

} // namespace

void fuzz_master::answer(const command& words)
{
    const bool greets = !votes_ && name_of(words) != "SET" && !name_of(words).starts_with("EVAL");
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
    case 2: // With a push in front, or an attribute.
        return (input_.below(2) == 0 ? ">2\r\n+invalidate\r\n*0\r\n" : "|1\r\n+ttl\r\n:5\r\n") +
               honest_answer(words);
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

std::string fuzz_master::greeting(const command& words)
{
    const std::string name = name_of(words);
    if (name == "HELLO")
    {
        protocol_ = 3;
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
        knows_scripts_ = true;
        return bulk(net::release_script.sha1);
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
    if (name == "TIME")
    {
        const auto now =
            std::chrono::duration_cast<std::chrono::microseconds>(world_.now().time_since_epoch()).count();
        return "*2\r\n" + bulk(std::to_string(now / 1'000'000)) + bulk(std::to_string(now % 1'000'000));
    }
    if (name == "SET")
    {
        if (find(words[1]) != nullptr)
        {
            return protocol_ == 3 ? "_\r\n" : "$-1\r\n";
        }
        keys_[words[1]] = {words[2], world_.now() + std::chrono::milliseconds{number_in(words[5])}};
        return "+OK\r\n";
    }
    if (name == "CONFIG")
    {
        return "%0\r\n";
    }
    return name == "EVAL" || name == "EVALSHA" ? script_answer(words) : greeting(words);
}

std::string fuzz_master::script_answer(const command& words)
{
    if (name_of(words) == "EVALSHA" && !knows_scripts_)
    {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    entry* const held = find(words[3]);
    if (words[1] == net::inspect_script)
    {
        return held == nullptr ? "*2\r\n_\r\n:-2\r\n" : "*2\r\n" + bulk(held->owner_id) + ":1000\r\n";
    }
    if (words[1] == net::turn_script.sha1 || words[1] == net::turn_script.text)
    {
        if (held == nullptr)
        {
            keys_[words[3]] = {words[4], world_.now() + std::chrono::milliseconds{number_in(words[5])}};
        }
        return held == nullptr || held->owner_id == words[4] ? ":0\r\n" : ":3\r\n";
    }
    if (held == nullptr || held->owner_id != words[4])
    {
        return ":0\r\n";
    }
    if (words[1] == net::release_script.sha1 || words[1] == net::release_script.text)
    {
        keys_.erase(words[3]);
        return ":1\r\n";
    }
    held->expires_at =
        std::max(held->expires_at, world_.now() + std::chrono::milliseconds{number_in(words[5])});
    return ":1\r\n";
}

fuzz_master::entry* fuzz_master::find(const std::string& key)
{
    const auto found = keys_.find(key);
    if (found == keys_.end())
    {
        return nullptr;
    }
    if (found->second.expires_at <= world_.now())
    {
        keys_.erase(found);
        return nullptr;
    }
    return &found->second;
}

} // namespace redlock::test
