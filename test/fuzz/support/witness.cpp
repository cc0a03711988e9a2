// SPDX-License-Identifier: BSL-1.0
// What a witness of the whole network knows.
#include "witness.hpp"

#include "fuzz_input.hpp"

#include "net/command.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

namespace redlock::test
{

namespace
{

constexpr std::string_view nobody = "9223372036854775807"; // The id that a handshake asks about.
constexpr std::size_t owner_id_length = 32;
constexpr std::int64_t hour = 3'600'000; // In milliseconds: no turn is so far away.

std::chrono::milliseconds milliseconds_in(const std::string& word)
{
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    require(error == std::errc{} && end == word.data() + word.size() && value > 0, "a ttl that is no ttl");
    return std::chrono::milliseconds{value};
}

bool is(const net::script& script, const command& words)
{
    return words[1] == script.sha1 || words[1] == script.text;
}

/// What a command is for, with its owner id and ttl. Fails for one that the library has no reason to send.
written read(const command& words)
{
    const std::string name = name_of(words);
    written result;
    if (name == "SET")
    {
        require(words.size() == 6 && words[3] == "NX" && words[4] == "PX", "a SET without NX and PX");
        result.what = purpose::set;
        result.owner_id = words[2];
        result.ttl = milliseconds_in(words[5]);
    }
    else if (name == "EVALSHA" || name == "EVAL")
    {
        require(words.size() >= 4 && words[2] == "1", "a script without its key");
        if (words[1] == net::inspect_script)
        {
            return result;
        }
        require(words.size() >= 5, "a script without an owner id");
        result.owner_id = words[4];
        result.in_full = name == "EVAL";
        if (is(net::turn_script, words))
        {
            require(words.size() == 9, "a turn with too few or too many arguments");
            result.what = purpose::turn;
            result.ttl = milliseconds_in(words[5]);
        }
        else if (is(net::release_script, words))
        {
            require(
                words.size() == 5 || (words.size() == 6 && words[5] == "line"),
                "a release with too many arguments");
            result.what = purpose::release;
        }
        else
        {
            require(is(net::extend_script, words) && words.size() == 6, "a script that nobody knows");
            result.what = purpose::extend;
            result.ttl = milliseconds_in(words[5]);
        }
    }
    else
    {
        const bool asks_id = name == "CLIENT" && words.size() == 2 && words[1] == "ID";
        result.what = name == "HELLO" || asks_id ? purpose::greeting : purpose::other;
        return result;
    }
    require(result.owner_id.size() == owner_id_length, "an owner id that is none");
    return result;
}

/// Whether a SET, or a turn, was answered in a way that rules out that it has written its key.
bool has_not_run(const written& to, const resp::reply& reply)
{
    if (to.what != purpose::set && to.what != purpose::turn)
    {
        return false;
    }
    if (reply.is_error())
    {
        const core::server_error error = core::classify(reply.text());
        // A script may have been refused what follows its SET.
        const bool in_script = to.what == purpose::turn && error == core::server_error::no_permission;
        return core::rules_out_a_key(error) && !in_script;
    }
    return to.what == purpose::turn && reply.root().kind == resp::kind::integer && reply.integer() > 0 &&
           reply.integer() <= hour;
}

} // namespace

void witness::check_kill(std::size_t master, const command& words) const
{
    if (words.size() == 4 && words[0] == "CLIENT" && words[1] == "KILL" && words[3] != nobody)
    {
        require(told_ids_[master].contains(words[3]), "the connection of a stranger is killed");
    }
}

written witness::on_command(std::size_t master, const command& words, clock::time_point now)
{
    require(!words.empty(), "a command without words");
    check_kill(master, words);
    written result = read(words);
    result.at = now;
    if (result.owner_id.empty())
    {
        return result;
    }
    story& about = stories_[result.owner_id];
    share& here = about.at[master];
    if (result.what == purpose::release)
    {
        here.release = true;
        if (on_release)
        {
            on_release(result.owner_id);
        }
        return result;
    }
    require(!here.release, "something is asked for behind the release");
    here.sets += result.what == purpose::set || result.what == purpose::turn ? 1 : 0;
    result.rejoins = result.what == purpose::set && about.handed_out;
    return result;
}

void witness::on_answer(std::size_t master, const written& to, const resp::reply& reply)
{
    if (to.what == purpose::greeting)
    {
        const resp::node* const id =
            reply.root().kind == resp::kind::integer ? &reply.root() : reply.find("id");
        told_ids_[master].insert(id != nullptr ? std::to_string(id->integer) : std::string{});
        return;
    }
    if (to.owner_id.empty())
    {
        return;
    }
    share& here = stories_[to.owner_id].at[master];
    const bool ok = reply.root().kind == resp::kind::simple_string && reply.text() == "OK";
    const bool number = reply.root().kind == resp::kind::integer;
    const bool one = number && reply.integer() == 1;
    const bool has_turn = number && (reply.integer() == 0 || reply.integer() == -1);
    if ((to.what == purpose::set && ok && !to.rejoins) || (to.what == purpose::turn && has_turn) ||
        (to.what == purpose::extend && one))
    {
        // What the documentation promises: ttl - elapsed - drift, with drift = ttl x factor + 2 ms.
        const double milliseconds = static_cast<double>(to.ttl.count()) * drift_factor_ + 2.0;
        const auto drift = std::chrono::duration_cast<clock::duration>(
            std::chrono::duration<double, std::milli>{milliseconds});
        here.good = std::max(here.good, to.at + to.ttl - drift);
    }
    if (to.what == purpose::extend && one)
    {
        here.extended = std::max(here.extended, to.at);
    }
    here.sets -= has_not_run(to, reply) ? 1 : 0;
    here.gone = here.gone || (to.what == purpose::release && number);
}

void witness::on_lease(std::string_view owner_id)
{
    const auto found = stories_.find(owner_id);
    require(found != stories_.end(), "a lease whose owner id was never sent");
    require(!found->second.handed_out, "a lease that was handed out twice");
    found->second.handed_out = true;
}

const witness::story& witness::story_of(std::string_view owner_id) const
{
    const auto found = stories_.find(owner_id);
    require(found != stories_.end(), "an owner id that was never sent");
    return found->second;
}

clock::time_point witness::provable(std::string_view owner_id) const
{
    const story& about = story_of(owner_id);
    std::array<clock::time_point, max_fuzz_masters> good{};
    std::transform(
        about.at.begin(), about.at.end(), good.begin(), [](const share& each) { return each.good; });
    std::sort(good.begin(), good.end(), std::greater<>{});
    return good[quorum() - 1];
}

std::size_t witness::extended_since(std::string_view owner_id, clock::time_point when) const
{
    const story& about = story_of(owner_id);
    return static_cast<std::size_t>(std::count_if(
        about.at.begin(), about.at.end(), [when](const share& each) { return each.extended >= when; }));
}

std::size_t witness::released(std::string_view owner_id) const
{
    const story& about = story_of(owner_id);
    return static_cast<std::size_t>(
        std::count_if(about.at.begin(), about.at.end(), [](const share& each) { return each.gone; }));
}

std::size_t witness::still_owed() const
{
    for (const auto& [owner_id, about] : stories_)
    {
        for (std::size_t master = 0; master < masters_; ++master)
        {
            if (about.at[master].sets > 0 && !about.at[master].release)
            {
                return master;
            }
        }
    }
    return masters_;
}

} // namespace redlock::test
