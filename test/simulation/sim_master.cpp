// SPDX-License-Identifier: BSL-1.0
// One master of a simulation: its connections, and the behaviour that a test scripts.
#include "sim_master.hpp"

#include "support/sha1.hpp"

#include "net/arming_scripts.hpp"
#include "net/command.hpp"
#include "net/provision_scripts.hpp"
#include "net/queue_scripts.hpp"
#include "net/trial_scripts.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace redlock::test
{

namespace asio = boost::asio;

std::string what_of(const command& words)
{
    const std::string name = name_of(words);
    if (name == "CLIENT" && words.back() == "9223372036854775807")
    {
        return "may kill?"; // Asked in every handshake: no client has this id.
    }
    if ((name == "CLIENT" || name == "SCRIPT") && words.size() > 1)
    {
        return name + " " + name_of({words[1]});
    }
    if ((name == "EVAL" || name == "EVALSHA") && words.size() > 1)
    {
        using known = std::pair<const net::script*, const char*>;
        for (const auto& [script, purpose] :
             {known{&net::release_script, "release"}, known{&net::release_to_queue_script, "release"},
              known{&net::extend_script, "extend"}, known{&net::ask_script, "ask"},
              known{&net::guarded_extend_script, "extend"}, known{&net::guarded_ask_script, "ask"},
              known{&net::guarded_acquire_script, "acquire"}, known{&net::raise_script, "raise"},
              known{&net::quarantine_script, "quarantine"}, known{&net::arm_script, "arm"},
              known{&net::largest_counter_script, "largest counter"}})
        {
            if (words[1] == script->sha1 || words[1] == script->text)
            {
                return purpose;
            }
        }
        static const std::string quarantine_of_provisioning = net::provision_quarantine_script();
        if (words[1] == quarantine_of_provisioning)
        {
            return "quarantine";
        }
        if (words[1] == net::queue_trial_script)
        {
            return "queue trial";
        }
        if (words[1] == net::provision_look_script)
        {
            return "look";
        }
        if (words[1] == net::provision_trial_script || words[1] == net::vote_trial_script)
        {
            return "trial";
        }
        if (words[1] == net::retire_script)
        {
            return "retire";
        }
    }
    return name;
}

namespace
{

/// Returns whether the last but one argument of a command is a hint.
bool has_hint(const command& words)
{
    const auto is = [&words](const net::script& script)
    { return words[1] == script.sha1 || words[1] == script.text; };
    return words.size() > 2 && (is(net::guarded_acquire_script) || is(net::guarded_ask_script));
}

bool writes(std::string_view what)
{
    static constexpr std::array<std::string_view, 9> all{
        "SET", "ask", "extend", "release", "acquire", "raise", "quarantine", "arm", "retire"};
    return std::find(all.begin(), all.end(), what) != all.end();
}

} // namespace

sim_master::sim_master(virtual_world& world, std::string its_run_id)
    : run_id{std::move(its_run_id)}, world_{world}, keys_{world}
{
    draw_replication_id();
}

void sim_master::draw_replication_id()
{
    replication_id = sha1_hex(run_id + " " + std::to_string(promotions_++));
    replication_ids_.emplace_back(world_.now(), replication_id);
}

virtual_link& sim_master::link(std::int64_t id)
{
    return *clients_.at(id);
}

virtual_link& sim_master::link()
{
    if (clients_.empty())
    {
        throw std::out_of_range{"this master has no clients"};
    }
    return *clients_.rbegin()->second;
}

void sim_master::resume()
{
    hung_ = false;
    for (const auto& [to, bytes] : std::exchange(unsent_, {}))
    {
        to->reply(bytes);
    }
    // One iteration of a server's event loop: input of existing connections, then new connections.
    const auto old_ones = clients_;
    for (const auto& [id, who] : old_ones)
    {
        serve(*who);
    }
    for (const auto& who : std::exchange(arrived_, {}))
    {
        on_arrival(who);
        serve(*who);
    }
}

void sim_master::answer(const std::string& what, scripted_answer with, std::size_t times)
{
    answers_[what].insert(answers_[what].end(), times, std::move(with));
}

void sim_master::refuse(const std::string& what, std::string bytes)
{
    refusals_[what] = std::move(bytes);
}

void sim_master::answer_as_usual()
{
    refusals_.clear();
    answers_.clear();
}

void sim_master::start_anew(const std::string& new_run_id)
{
    for (const auto& [id, who] : std::exchange(clients_, {}))
    {
        who->close_by_master(asio::error::connection_reset);
    }
    for (const auto& who : std::exchange(arrived_, {}))
    {
        who->close_by_master(asio::error::connection_reset);
    }
    run_id = new_run_id;
    draw_replication_id();
    may_have_lost();
    last_id_ = 0;
    hung_ = false;
    unsent_.clear();
    scripts_.clear();
}

void sim_master::restart(const std::string& new_run_id)
{
    start_anew(new_run_id);
    if (on_disk == persistence::none)
    {
        flush_all();
    }
    else if (on_disk == persistence::everysec)
    {
        lose_writes_of(unflushed);
    }
}

void sim_master::restart(const std::string& new_run_id, bool keeps_keys)
{
    start_anew(new_run_id);
    if (!keeps_keys)
    {
        flush_all();
    }
}

void sim_master::promote_stale_replica(const std::string& new_run_id, clock::duration behind)
{
    start_anew(new_run_id);
    lose_writes_of(behind);
}

void sim_master::lose_writes_of(clock::duration last)
{
    keys_.go_back_to(world_.now() - last);
    draw_replication_id();
    may_have_lost();
}

void sim_master::put_back(clock::duration by)
{
    const clock::time_point then = world_.now() - by;
    keys_.go_back_to(then);
    for (const auto& [since, id] : replication_ids_)
    {
        replication_id = since <= then ? id : replication_id;
    }
}

void sim_master::show_database(std::size_t which)
{
    shown_ = which;
    keys_.select(which);
}

void sim_master::break_connections()
{
    const auto all = clients_;
    for (const auto& [id, who] : all)
    {
        who->break_off();
    }
}

std::size_t sim_master::count(std::string_view what) const
{
    return static_cast<std::size_t>(
        std::count_if(log_.begin(), log_.end(), [&](const received& each) { return each.what == what; }));
}

const received& sim_master::last(std::string_view what) const
{
    const auto found =
        std::find_if(log_.rbegin(), log_.rend(), [&](const received& each) { return each.what == what; });
    if (found == log_.rend())
    {
        throw std::out_of_range{"this master got no " + std::string{what}};
    }
    return *found;
}

void sim_master::heal()
{
    network.cut_there = network.cut_back = false;
    network.cut_off.reset();
    takes_bytes = true;
    for (const auto& each : links())
    {
        each->go_on();
        each->tell_room();
    }
}

std::vector<std::shared_ptr<virtual_link>> sim_master::links()
{
    std::vector<std::shared_ptr<virtual_link>> all;
    for (const auto& each : links_)
    {
        if (auto one = each.lock())
        {
            all.push_back(std::move(one));
        }
    }
    return all;
}

void sim_master::on_link(const std::shared_ptr<virtual_link>& fresh)
{
    std::erase_if(links_, [](const std::weak_ptr<virtual_link>& each) { return each.expired(); });
    links_.push_back(fresh);
}

void sim_master::on_arrival(std::shared_ptr<virtual_link> who)
{
    if (hung_)
    {
        arrived_.push_back(std::move(who));
        return;
    }
    if (door == entrance::crowded)
    {
        who->reply("-ERR max number of clients reached\r\n");
        who->close_by_master(asio::error::eof);
        return;
    }
    client_state& state = who->at_master();
    state.id = ++last_id_;
    state.authenticated = password.empty();
    clients_.emplace(state.id, std::move(who));
}

void sim_master::on_bytes(virtual_link& from, std::string_view bytes)
{
    from.at_master().requests.feed(bytes);
    serve(from);
}

void sim_master::on_end(virtual_link& from)
{
    from.at_master().ended = true;
    serve(from);
}

/// Executes the commands received on a connection, even if its client has closed it since, because a server reads them
/// before it sees the end.
void sim_master::serve(virtual_link& who)
{
    client_state& state = who.at_master();
    while (state.id != 0 && !hung_)
    {
        const std::optional<command> words = state.requests.next();
        if (!words)
        {
            break;
        }
        execute(who, *std::move(words));
    }
    if (state.id != 0 && !hung_ && state.ended)
    {
        clients_.erase(std::exchange(state.id, 0));
    }
}

void sim_master::execute(virtual_link& from, command words)
{
    client_state& state = from.at_master();
    std::string what = what_of(words);
    if (what == "HELLO" && state.protocol == 3)
    {
        // The last command of the handshake ahead of the subscription; later, the end of one of its requests.
        what = std::exchange(state.was_greeted, true) ? "HELLO again" : "may greet?";
    }
    if (changed_hints_ && changed_hints_->first == state.origin && has_hint(words))
    {
        std::string& hint = words[words.size() - 2];
        hint = std::to_string(std::max<std::int64_t>(std::stoll(hint) + changed_hints_->second, 0));
    }
    const std::optional<scripted_answer> instead = scripted(state, what, words);
    const bool runs = !instead || instead->runs;
    if (!witness)
    {
        log_.push_back({world_.now(), state.id, what, words, runs});
    }
    published_.clear();
    keys_.select(state.database);
    std::string bytes = runs ? run(state, what, words) : std::string{};
    keys_.select(shown_);
    if (instead && !instead->bytes.empty())
    {
        bytes = instead->bytes;
    }
    state.got_nonsense = state.got_nonsense || (instead && instead->nonsense);
    const bool waits = !instead && fsync > clock::duration{0} && writes(what);
    for (const auto& [to, push] : std::exchange(pushes_, {}))
    {
        if (waits)
        {
            unsent_.emplace_back(to, push);
        }
        else
        {
            to->reply(push);
        }
    }
    if (waits)
    {
        wait_for_disk(from, bytes);
    }
    else if (!bytes.empty())
    {
        from.reply(bytes);
    }
    if (witness)
    {
        witness(state, what, words, bytes);
    }
    if (instead && instead->closes)
    {
        clients_.erase(state.id);
        from.close_by_master(asio::error::eof);
    }
}

/// As with appendfsync always: the reply, and all that comes after the command, wait for the disk.
void sim_master::wait_for_disk(virtual_link& from, std::string bytes)
{
    unsent_.emplace_back(from.shared_from_this(), std::move(bytes));
    hung_ = true;
    world_.at(world_.now() + fsync, event_kind::timer, [this] { resume(); });
}

std::optional<scripted_answer>
sim_master::scripted(const client_state& from, const std::string& what, const command& words)
{
    for (const auto habit : {habits.find(what), habits.find(name_of(words))})
    {
        // Permissions are checked after the login.
        if (habit != habits.end() && (from.authenticated || !habit->second.starts_with("-NOPERM ")))
        {
            return scripted_answer{.bytes = habit->second};
        }
    }
    if (answers_.empty() && refusals_.empty())
    {
        return std::nullopt;
    }
    for (const std::string& kind : {what, std::string{"*"}})
    {
        if (const auto found = answers_.find(kind); found != answers_.end() && !found->second.empty())
        {
            scripted_answer next = std::move(found->second.front());
            found->second.pop_front();
            return next;
        }
    }
    const auto found = refusals_.find(what);
    return found != refusals_.end() ? std::optional{scripted_answer{.bytes = found->second}} : std::nullopt;
}

} // namespace redlock::test
