// SPDX-License-Identifier: BSL-1.0
// What a witness of the whole network knows.
#include "witness.hpp"

#include "fuzz_input.hpp"
#include "refused_question.hpp"

#include "net/command.hpp"
#include "net/queue_scripts.hpp"
#include "net/trial_scripts.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>

namespace redlock::test
{

namespace
{

constexpr std::string_view no_client = "9223372036854775807"; // The id that a handshake asks about.
constexpr std::size_t owner_id_length = 32;
constexpr std::int64_t longest = 24 * 3'600'000; // In milliseconds: no argument is longer.
constexpr std::size_t max_unsolicited = 16;      // Pushes.
constexpr std::uint64_t many_clients = 1000;     // More than wait in a run.

std::optional<std::uint64_t> number_in(std::string_view word)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = error == std::errc{} && end == word.data() + word.size();
    return whole ? std::optional{value} : std::nullopt;
}

/// An argument in milliseconds, from `least`.
std::chrono::milliseconds milliseconds_in(const std::string& word, std::int64_t least)
{
    const std::optional<std::uint64_t> value = number_in(word);
    require(value && *value <= longest, "an argument that is no time");
    require(static_cast<std::int64_t>(*value) >= least, "a time that is too short");
    return std::chrono::milliseconds{*value};
}

bool is_text(const resp::reply& push, std::size_t at, std::string_view text)
{
    return push.nodes.size() > at && push.nodes[at].depth == 1 && push.nodes[at].text == text;
}

bool is(const net::script& script, const command& words)
{
    return words[1] == script.sha1 || words[1] == script.text;
}

/// Whether a SET, or a question, was answered in a way that rules out that it has written its key.
bool has_not_run(const written& to, const resp::reply& reply)
{
    if (to.what != purpose::set && to.what != purpose::ask)
    {
        return false;
    }
    if (reply.is_error())
    {
        const core::server_error error = core::classify(reply.text());
        // A script may have been refused what follows its SET.
        const bool in_script = to.what == purpose::ask && error == core::server_error::no_permission;
        return core::rules_out_a_key(error) && !in_script;
    }
    return to.what == purpose::ask && refusal_in(reply);
}

/// The client that a member of the wait queue names. The scripts rename its entry if its mark changes.
std::string client_of(std::string_view member)
{
    return std::string{member.substr(member.starts_with('-') ? 1 : 0)};
}

} // namespace

/// What a command is for, with its owner id and ttl. Fails for one that the library has no reason to send.
written witness::read(const command& words)
{
    const std::string name = name_of(words);
    written result;
    if (name == "SET")
    {
        require(words.size() == 6 && words[3] == "NX" && words[4] == "PX", "a SET without NX and PX");
        result.what = purpose::set;
        result.owner_id = words[2];
        result.ttl = milliseconds_in(words[5], 1);
    }
    else if (name == "EVALSHA" || name == "EVAL")
    {
        if (words[1] == net::queue_trial_script)
        {
            result.what = purpose::other;
            return result;
        }
        require(words.size() >= 4 && words[2] == "1", "a script without its key");
        if (words[1] == net::inspect_script)
        {
            return result;
        }
        read_script(words, result);
    }
    else
    {
        const bool asks_id = name == "CLIENT" && words.size() == 2 && words[1] == "ID";
        result.what = name == "HELLO" || asks_id ? purpose::greeting
                      : name == "SUBSCRIBE"      ? purpose::subscribe
                      : name == "PUBLISH"        ? purpose::publish
                                                 : purpose::other;
        if (name == "SUBSCRIBE" || name == "PUBLISH")
        {
            require(words.size() == (name == "PUBLISH" ? 3 : 2), "a channel, or a message, is missing");
            require(words[1].starts_with("redlock:"), "a channel of a stranger");
            read_manager_id(words[1].substr(std::string_view{"redlock:"}.size()));
        }
        return result;
    }
    require(result.owner_id.size() == owner_id_length, "an owner id that is none");
    return result;
}

void witness::read_script(const command& words, written& result)
{
    result.in_full = name_of(words) == "EVAL";
    if (is(net::ask_script, words))
    {
        require(words.size() == 10, "a question with too few or too many arguments");
        result.what = purpose::ask;
        result.owner_id = words[5];
        result.ttl = milliseconds_in(words[6], 1);
        result.member = words[4];
        milliseconds_in(words[7], 0);
        milliseconds_in(words[9], 1);
        const bool enters = milliseconds_in(words[8], 0).count() > 0;
        require(enters == (read_member(words[4]) != 0), "a client without a number is entered");
        return;
    }
    require(words.size() >= 5, "a script without an owner id");
    result.owner_id = words[4];
    if (is(net::release_script, words))
    {
        require(words.size() == 5, "a release with too many arguments");
        result.what = purpose::release;
    }
    else if (is(net::release_to_queue_script, words))
    {
        result.what = purpose::release;
        require(
            words.size() == 6 || words.size() == 8 || words.size() == 11, "a release with other arguments");
        milliseconds_in(words[5], 1);
        const std::string mode = words.size() == 6 ? "" : words[6];
        require(
            mode == (words.size() == 6   ? ""
                     : words.size() == 8 ? "left"
                                         : "lost"),
            "a mode that is none");
        // A master that wasn't asked to enter a client may say that it has: then a client without a number leaves.
        const std::uint64_t number = mode.empty() || words[7].empty() ? 1 : read_member(words[7]);
        require(number != 0 || mode == "left", "a client without a number stays in the queue");
        require(mode != "lost" || !words[7].empty(), "no client stays in the queue");
        if (mode == "lost")
        {
            milliseconds_in(words[8], 0);
            milliseconds_in(words[9], 1);
            milliseconds_in(words[10], 1);
        }
    }
    else
    {
        require(is(net::extend_script, words) && words.size() == 6, "a script that nobody knows");
        result.what = purpose::extend;
        result.ttl = milliseconds_in(words[5], 1);
    }
}

/// A manager has one id, at all masters and as long as it lives.
void witness::read_manager_id(std::string_view id)
{
    require(
        id.size() == owner_id_length && id.find_first_not_of("0123456789abcdef") == std::string_view::npos,
        "a manager id that is none");
    require(manager_id_.empty() || manager_id_ == id, "a manager has two ids");
    manager_id_ = id;
}

std::uint64_t witness::read_member(std::string_view member)
{
    member.remove_prefix(member.starts_with('-') ? 1 : 0);
    const std::size_t end = std::min(member.find(':'), member.size());
    read_manager_id(member.substr(0, end));
    const std::optional<std::uint64_t> number = number_in(member.substr(std::min(end + 1, member.size())));
    require(number && *number < many_clients, "a client that is none");
    return *number;
}

/// What the wait queue has to know: whether its messages reach the client, and who has left.
void witness::check_queue_command(std::size_t master, const command& words, const written& result)
{
    connection_facts& here = here_[master];
    if (result.what == purpose::subscribe)
    {
        require(!here.requested, "the subscription is requested twice at a time");
        here.requested = true;
        here.replies = 0;
        here.refused = here.received = false;
    }
    const bool is_queue_release =
        result.what == purpose::release && is(net::release_to_queue_script, words) && words.size() > 6;
    if (result.what != purpose::ask && !is_queue_release)
    {
        return;
    }
    const std::string member = result.what == purpose::ask ? result.member : words[7];
    const bool leaves = result.what == purpose::release && words[6] == "left";
    const bool receives = !member.starts_with('-');
    // A client that leaves may have been entered on an earlier connection. The script drops it under both names.
    require(
        leaves || member.empty() || receives == here.proven || receives == here.was_proven,
        "a client is entered as one that receives messages, and doesn't, or the other way round");
    if (leaves)
    {
        here.queued.erase(client_of(member));
    }
    else if (result.what == purpose::release || words[8] != "0")
    {
        here.queued.insert_or_assign(client_of(member), result.owner_id);
    }
}

void witness::on_push(std::size_t master, const resp::reply& push)
{
    connection_facts& here = here_[master];
    const bool on_channel = push.root().size == 3 && push.nodes.size() == 4 && is_text(push, 2, channel());
    if (on_channel && is_text(push, 1, "subscribe") && here.requested)
    {
        here.confirmed = true;
        return;
    }
    if (!on_channel || !is_text(push, 1, "message"))
    {
        ++here.unsolicited;
        return;
    }
    const std::string_view text = push.nodes[3].text;
    const std::optional<std::uint64_t> number = text.empty() ? std::nullopt : number_in(text.substr(1));
    const bool wakes = number && (text[0] == 'r' || text[0] == 'k') && *number > 0 && *number < many_clients;
    const bool is_probe = text == "subscribed" && here.requested;
    here.unsolicited += wakes || is_probe ? 0 : 1;
}

std::size_t witness::too_many_pushes(std::size_t master) const
{
    const connection_facts& here = here_[master];
    const std::size_t most = max_unsolicited - 1;
    return here.unsolicited - std::min(here.unsolicited, most);
}

std::string witness::still_queued(std::size_t master) const
{
    return here_[master].queued.empty() ? std::string{} : here_[master].queued.begin()->first;
}

/// Two at most, numbers and errors, ahead of the map that answers HELLO. Messages arrive if a push has confirmed the
/// SUBSCRIBE and the last of the replies is the number of receivers.
part_of_request witness::on_request_reply(std::size_t master, const resp::reply& reply)
{
    connection_facts& here = here_[master];
    const resp::kind kind = reply.root().kind;
    if (kind == resp::kind::map)
    {
        here.requested = false;
        here.proven = here.proven || (here.confirmed && here.received && !here.refused);
        return part_of_request::last;
    }
    const bool fits = here.replies < 2 && (reply.is_error() || kind == resp::kind::integer);
    ++here.replies;
    const bool passes =
        reply.is_error() && core::after_error(core::classify(reply.text())) == core::release_after::again;
    here.refused = here.refused || (reply.is_error() && !passes);
    here.received = kind == resp::kind::integer && reply.integer() > 0;
    return fits ? part_of_request::one : part_of_request::none;
}

void witness::check_kill(std::size_t master, const command& words) const
{
    if (words.size() == 4 && words[0] == "CLIENT" && words[1] == "KILL" && words[3] != no_client)
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
    check_queue_command(master, words, result);
    if (result.owner_id.empty())
    {
        return result;
    }
    story& about = stories_[result.owner_id];
    share& here = about.at[master];
    if (result.what == purpose::release)
    {
        const bool leaves = words.size() == 8 || (here.left && result.in_full);
        if (leaves && here.sets == 0 && !here.release)
        {
            here.left = true;
            return result;
        }
        here.release = true;
        if (on_release)
        {
            on_release(result.owner_id);
        }
        return result;
    }
    require(!here.release, "something is requested after the release");
    require(!here.left || about.handed_out, "something is requested after the queue was left");
    here.sets += result.what == purpose::set || result.what == purpose::ask ? 1 : 0;
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
    note_ask(master, to, reply);
    share& here = stories_[to.owner_id].at[master];
    const bool ok = reply.root().kind == resp::kind::simple_string && reply.text() == "OK";
    const bool number = reply.root().kind == resp::kind::integer;
    const bool one = number && reply.integer() == 1;
    const bool granted = to.what == purpose::ask && number && reply.integer() >= 0;
    if ((to.what == purpose::set && ok && !to.rejoins) || granted || (to.what == purpose::extend && one))
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
    const bool compared = number && reply.integer() >= 0 && reply.integer() <= 3;
    here.gone = here.gone || (to.what == purpose::release && compared);
}

/// Only a refused client is in the queue, unless it has left before the answer.
void witness::note_ask(std::size_t master, const written& to, const resp::reply& reply)
{
    std::map<std::string, std::string>& queued = here_[master].queued;
    const auto refused = to.what == purpose::ask ? refusal_in(reply) : std::nullopt;
    const auto found = to.what == purpose::ask ? queued.find(client_of(to.member)) : queued.end();
    const bool entered = refused && (*refused)[0] >= 0;
    if (found != queued.end() && found->second == to.owner_id && !entered)
    {
        queued.erase(found);
    }
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
