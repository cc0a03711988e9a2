// SPDX-License-Identifier: BSL-1.0
// Each master suffers one thing at a time, for a while that is drawn; a client may be stopped, or killed and replaced.
#include "stage.hpp"

#include "own_network.hpp"

#include <redlock/clock.hpp>
#include <redlock/provision.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

namespace redlock::nemesis
{

namespace
{

instant count(std::chrono::nanoseconds length)
{
    return length.count();
}

} // namespace

instant now()
{
    return redlock::clock::now().time_since_epoch().count();
}

std::string_view name_of(keeping how)
{
    switch (how)
    {
    case keeping::on_disk:
        return "keys on disk";
    case keeping::away:
        return "keys kept away";
    case keeping::lost:
        return "keys lost";
    case keeping::broken:
        return "keys lost, clocks moved";
    case keeping::guarded:
        return "guarded";
    case keeping::guarded_at_random:
        return "guarded, at random";
    }
    return "unknown";
}

const std::vector<stage::fault>& stage::faults()
{
    static const std::vector<fault> all{
        {"master killed", &stage::kill, &stage::start_again, true},
        {"master stopped", &stage::stop, &stage::go_on},
        {"delay", &stage::delay, &stage::pass_on},
        {"requests held", &stage::hold_requests, &stage::let_go},
        {"replies held", &stage::hold_replies, &stage::let_go},
        {"both held", &stage::hold_both, &stage::let_go},
        {"requests lost", &stage::drop_requests, &stage::pass_on},
        {"replies lost", &stage::drop_replies, &stage::pass_on},
        {"single bytes", &stage::split, &stage::pass_on},
        {"connections reset", &stage::reset, &stage::nothing},
        {"connections closed", &stage::close, &stage::nothing},
        {"ghosts", &stage::mark_stale, &stage::let_go},
        {"connections refused", &stage::refuse, &stage::pass_on},
        {"scripts forgotten", &stage::forget_scripts, &stage::nothing},
        {"keys flushed", &stage::flush, &stage::nothing, true},
        {"databases swapped", &stage::swap_databases, &stage::nothing, true},
        {"demoted and promoted", &stage::promote, &stage::nothing, true},
        {"failover to a late replica", &stage::cut_off_replica, &stage::fail_over, true},
        {"clock ahead", &stage::clock_ahead, &stage::clock_back, false, true},
    };
    return all;
}

files draw_files(chance& from)
{
    return std::array{files::none, files::rdb, files::aof, files::both}[from.below(4)];
}

std::string_view name_of(files kept)
{
    switch (kept)
    {
    case files::none:
        return "no files";
    case files::rdb:
        return "RDB";
    case files::aof:
        return "AOF";
    case files::both:
        return "RDB and AOF";
    }
    return "unknown";
}

stage::stage(scene what, chance& from, std::map<std::string, std::size_t>& counts)
    : scene_{what}, chance_{from}, counts_{counts}
{
    for (std::size_t index = 0; index < scene_.masters; ++index)
    {
        one_master& made = masters_.emplace_back();
        if (scene_.keys == keeping::broken)
        {
            made.clock = std::make_unique<test::settable_clock>(SETTABLE_CLOCK_PRELOAD);
        }
        made.server = start_server(made);
        made.proxy = std::make_unique<test::proxy>(made.server->port());
        if (scene_.replicas)
        {
            attach_replica(made);
        }
    }
    if (is_guarded(scene_.keys))
    {
        wait_for_replicas();
        provision();
        resource_.emplace(scene_.compares);
    }
    clients_.resize(scene_.clients);
    for (one_client& each : clients_)
    {
        start_client(each);
    }
}

/// Most servers of a guarded round have the same files: none, an RDB of a second ago, an AOF, or both.
std::unique_ptr<test::server> stage::start_server(const one_master& one)
{
    test::server_options options = test::server_options::plain();
    options.settings = {"--repl-diskless-sync-delay", "0"};
    const auto add = [&](std::initializer_list<const char*> words)
    { options.settings.insert(options.settings.end(), words.begin(), words.end()); };
    if (scene_.keys == keeping::on_disk)
    {
        add({"--appendfsync", "always"});
    }
    const files kept = is_guarded(scene_.keys) && chance_.below(3) == 0 ? draw_files(chance_) : scene_.kept;
    if (kept == files::rdb || kept == files::both)
    {
        add({"--save", "1", "1"});
    }
    if (kept == files::aof || kept == files::both)
    {
        add({"--appendonly", "yes"});
    }
    if (one.clock != nullptr)
    {
        options.program = one.clock->program();
    }
    return std::make_unique<test::server>(options);
}

void stage::attach_replica(one_master& one)
{
    one.link = std::make_unique<test::proxy>(one.server->port());
    one.replica = start_server(one);
    one.replica->command({"REPLICAOF", "127.0.0.1", std::to_string(one.link->port())});
}

/// A first replica gives its master another incarnation, so that it would begin in quarantine.
void stage::wait_for_replicas()
{
    const instant limit = now() + count(60s);
    for (const one_master& each : masters_)
    {
        while (each.replica != nullptr &&
               each.replica->command({"INFO", "replication"}).text.find("master_link_status:up") ==
                   std::string::npos)
        {
            if (now() > limit)
            {
                throw std::runtime_error{"a replica doesn't reach its master: " + each.replica->log()};
            }
            std::this_thread::sleep_for(5ms);
        }
    }
}

void stage::provision()
{
    redlock::config masters;
    for (const one_master& each : masters_)
    {
        masters.masters.emplace_back(each.proxy->url());
    }
    boost::asio::io_context io;
    redlock::provision_report report;
    const redlock::provision_options options{.max_ttl = guarded_max_ttl, .fresh = true};
    redlock::async_provision(io, masters, options, report, [](redlock::error_code) {});
    io.run();
    if (report.result)
    {
        throw std::runtime_error{report.to_string()};
    }
}

/// Returns whether a master has an armed marker for its present incarnation, and is about to keep it.
bool stage::is_armed(one_master& one)
{
    if (one.suffers != nullptr && (one.suffers->loses_keys || one.suffers->begin == &stage::stop))
    {
        return false; // It may not answer.
    }
    const std::string marker = one.server->command({"GET", "lock::redlock-guard"}).text;
    const std::string info = one.server->command({"INFO", "replication"}).text;
    const std::string id = marker.substr(marker.rfind(' ') + 1);
    return marker.find(" armed ") != std::string::npos &&
           info.find("master_replid:" + id) != std::string::npos;
}

bool stage::may_happen(const fault& what, const one_master& to)
{
    if (what.begin == &stage::cut_off_replica && to.replica == nullptr)
    {
        return false;
    }
    if (what.moves_clock || (what.loses_keys && is_lasting(scene_.keys)))
    {
        return scene_.keys == keeping::broken || what.begin == &stage::kill;
    }
    if (what.loses_keys && scene_.keys == keeping::guarded)
    {
        const auto unarmed = std::count_if(
            masters_.begin(), masters_.end(),
            [&](one_master& each) { return &each != &to && !is_armed(each); });
        const std::size_t minority = (scene_.masters - 1) / 2;
        return static_cast<std::size_t>(unarmed) < minority; // And this one.
    }
    return true;
}

/// Returns the file that a client writes to.
std::string stage::output_of(std::size_t client) const
{
    return fmt::format("{}/{}", directory_.path(), client);
}

void stage::start_client(one_client& one)
{
    std::vector<std::string> arguments{
        NEMESIS_CLIENT, std::to_string(chance_.number()), std::to_string(scene_.claim.count()),
        std::to_string(scene_.resources), resource_ ? "guarded" : "plain"};
    if (resource_)
    {
        arguments.insert(arguments.end(), {resource_->path(), resource_->script()});
    }
    for (const one_master& each : masters_)
    {
        arguments.push_back(each.proxy->url());
    }
    one.number = ++started_;
    one.process = test::child_process{arguments, output_of(one.number)};
    one.stopped_until = 0;
}

void stage::harm()
{
    if (scene_.own_network && chance_.below(30) == 0)
    {
        ++counts_["network unplugged"];
        unplug();
        return;
    }
    if (chance_.below(8) == 0)
    {
        harm_client();
        return;
    }
    const fault& what = faults()[chance_.below(faults().size())];
    const std::chrono::milliseconds longest = std::array{100ms, 500ms, 2500ms}[chance_.below(3)];
    // A majority that comes back without its last writes lets two clients in.
    const bool replaces_process = what.loses_keys && what.end != &stage::nothing;
    if (chance_.below(replaces_process ? 3 : 20) != 0)
    {
        harm_master(masters_[chance_.below(masters_.size())], what, longest);
        return;
    }
    for (one_master& each : masters_)
    {
        harm_master(each, what, longest);
    }
}

/// For all at once, and this process too: it does nothing else meanwhile.
void stage::unplug()
{
    plug_in(false);
    std::this_thread::sleep_for(chance_.between(50ms, 2500ms));
    plug_in(true);
}

void stage::harm_client()
{
    one_client& one = clients_[chance_.below(clients_.size())];
    if (one.stopped_until != 0 || !one.process.running())
    {
        return; // A client that has ended by itself is reported at the end of the round.
    }
    if (chance_.below(2) == 0)
    {
        ++counts_["client killed"];
        one.process.kill();
        start_client(one);
        return;
    }
    try
    {
        one.process.stop();
    }
    catch (const std::runtime_error&)
    {
        if (one.process.running())
        {
            throw;
        }
        return; // It has ended meanwhile.
    }
    ++counts_["client stopped"];
    one.stopped_until = now() + count(chance_.between(50ms, longest_ttl));
}

void stage::harm_master(one_master& one, const fault& what, std::chrono::milliseconds longest)
{
    if (one.suffers != nullptr || !may_happen(what, one))
    {
        return;
    }
    ++counts_[what.name];
    (this->*what.begin)(one);
    const bool stays_away = scene_.keys == keeping::away && what.begin == &stage::kill;
    one.suffers_until = now() + count(stays_away ? longest_ttl : chance_.between(10ms, longest));
    one.suffers = &what;
}

void stage::heal_what_is_due()
{
    for (one_master& each : masters_)
    {
        if (each.suffers != nullptr && now() >= each.suffers_until)
        {
            (this->*std::exchange(each.suffers, nullptr)->end)(each);
        }
    }
    for (one_client& each : clients_)
    {
        if (each.stopped_until != 0 && now() >= each.stopped_until)
        {
            each.process.resume();
            each.stopped_until = 0;
        }
    }
}

void stage::heal()
{
    // Who is kept away stays away for as long as was drawn.
    const auto suffers = [this]
    {
        return std::any_of(
            masters_.begin(), masters_.end(), [](const one_master& each) { return each.suffers != nullptr; });
    };
    for (one_client& each : clients_)
    {
        each.stopped_until = std::min(each.stopped_until, now());
    }
    while (suffers())
    {
        heal_what_is_due();
        std::this_thread::sleep_for(5ms);
    }
    heal_what_is_due();
}

std::vector<std::string> stage::end_clients()
{
    for (const one_client& each : clients_)
    {
        ::kill(each.process.pid(), SIGTERM);
    }
    std::vector<std::string> wrong;
    for (const one_client& each : clients_)
    {
        if (std::string found = wrong_end(each); !found.empty())
        {
            wrong.push_back(std::move(found));
        }
    }
    return wrong;
}

/// Waits for the end of a client. Returns what is wrong with it, with the last lines of its output, or nothing.
std::string stage::wrong_end(const one_client& one) const
{
    std::string how = "doesn't end";
    const bool ended = one.process.wait_for_end(60s);
    const std::vector<std::string> lines = test::last_lines(output_of(one.number), 5);
    if (ended)
    {
        siginfo_t end{};
        ::waitid(P_PID, static_cast<id_t>(one.process.pid()), &end, WEXITED | WNOWAIT);
        const bool has_exited = end.si_code == CLD_EXITED;
        // Until a client handles SIGTERM, it writes nothing.
        if (has_exited ? end.si_status == 0 : end.si_status == SIGTERM && lines.empty())
        {
            return {};
        }
        how = fmt::format("ended with {} {}", has_exited ? "exit code" : "signal", end.si_status);
    }
    return fmt::format("number {} {}: {}", one.number, how, fmt::join(lines, "; "));
}

std::vector<diary> stage::diaries() const
{
    std::vector<diary> all;
    for (std::size_t number = 1; number <= started_; ++number)
    {
        std::ifstream file{output_of(number)};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        all.push_back(read_diary(fmt::format("client {}", number), text));
    }
    return all;
}

std::vector<std::vector<request>> stage::requests()
{
    std::vector<std::vector<request>> all;
    for (std::size_t number = 0; resource_ && number < scene_.resources; ++number)
    {
        all.push_back(resource_->log(fmt::format("stock{}", number)));
    }
    return all;
}

std::vector<std::string> stage::owners_on_a_quorum()
{
    std::map<std::string, std::size_t> seen;
    for (one_master& each : masters_)
    {
        for (const test::reply& key : each.server->command({"KEYS", "*"}).elements)
        {
            if (key.text.find(":redlock-") != std::string::npos)
            {
                continue; // The marker, the counters and the record of a guarded group.
            }
            ++seen[each.server->command({"GET", key.text}).text];
        }
    }
    std::vector<std::string> found;
    for (const auto& [owner, masters] : seen)
    {
        if (masters > masters_.size() / 2 && !owner.empty())
        {
            found.push_back(owner);
        }
    }
    return found;
}

// ---- Faults -------------------------------------------------------------------------------------------------

void stage::kill(one_master& one)
{
    one.server->kill();
}
void stage::start_again(one_master& one)
{
    one.server->restart();
    if (is_guarded(scene_.keys))
    {
        const bool has_marker = one.server->command({"EXISTS", "lock::redlock-guard"}).integer == 1;
        ++counts_[has_marker ? "master killed: back with its data" : "master killed: back empty"];
    }
}
void stage::stop(one_master& one)
{
    one.server->stop();
}
void stage::go_on(one_master& one)
{
    one.server->resume();
}
void stage::delay(one_master& one)
{
    one.proxy->set_delay(chance_.between(1ms, 60ms));
}
void stage::hold_requests(one_master& one)
{
    one.proxy->hold_to_server();
}
void stage::hold_replies(one_master& one)
{
    one.proxy->hold_to_client();
}
void stage::let_go(one_master& one)
{
    one.proxy->release_held();
}
void stage::drop_requests(one_master& one)
{
    one.proxy->drop_to_server(true);
}
void stage::drop_replies(one_master& one)
{
    one.proxy->drop_to_client(true);
}
void stage::split(one_master& one)
{
    one.proxy->split_bytes(true);
}
void stage::reset(one_master& one)
{
    one.proxy->reset_connections();
}
void stage::close(one_master& one)
{
    one.proxy->close_connections();
}
void stage::refuse(one_master& one)
{
    one.proxy->refuse(true);
}
void stage::flush(one_master& one)
{
    one.server->command({"FLUSHALL"});
}
void stage::swap_databases(one_master& one)
{
    one.server->command({"SWAPDB", "0", "1"});
}
/// Of a master that doesn't exist, which doesn't answer: it keeps its keys, and has another incarnation afterwards.
void stage::promote(one_master& one)
{
    one.server->command({"REPLICAOF", "127.0.0.1", "1"});
    one.server->command({"REPLICAOF", "NO", "ONE"});
}
/// It doesn't notice, and remains what its master is now.
void stage::cut_off_replica(one_master& one)
{
    one.link->drop_to_client(true);
}
/// The late replica replaces its master under the master's address.
void stage::fail_over(one_master& one)
{
    one.server->kill();
    one.replica->command({"REPLICAOF", "NO", "ONE"});
    one.proxy->redirect(one.replica->port());
    one.server = std::move(one.replica);
    attach_replica(one);
}
void stage::clock_ahead(one_master& one)
{
    one.clock->set(1h);
}
void stage::clock_back(one_master& one)
{
    one.clock->set(0s);
}
void stage::forget_scripts(one_master& one)
{
    one.server->command({"SCRIPT", "FLUSH"});
}

void stage::hold_both(one_master& one)
{
    hold_requests(one);
    hold_replies(one);
}

/// Bytes were lost in the middle of streams, so these streams end.
void stage::pass_on(one_master& one)
{
    one.proxy->set_delay(0ms);
    one.proxy->split_bytes(false);
    one.proxy->refuse(false);
    one.proxy->drop_to_server(false);
    one.proxy->drop_to_client(false);
    one.proxy->reset_connections();
}

/// What is under way arrives after its connection is long gone for the client.
void stage::mark_stale(one_master& one)
{
    one.proxy->hold_to_server();
    std::this_thread::sleep_for(chance_.between(1ms, 30ms));
    one.proxy->close_client_side_keep_server();
}

} // namespace redlock::nemesis
