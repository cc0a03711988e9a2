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

namespace redlock::nemesis
{

namespace
{

instant count(std::chrono::nanoseconds length)
{
    return length.count();
}

test::server_options options_for(const scene& what, const test::settable_clock* clock)
{
    test::server_options options = test::server_options::plain();
    if (what.keys == keeping::on_disk)
    {
        options.settings = {"--appendonly", "yes", "--appendfsync", "always"};
    }
    if (clock != nullptr)
    {
        options.program = clock->program();
    }
    return options;
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
    case keeping::broken:
        return "keys lost";
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
        {"master killed", &stage::kill, &stage::start_again, false, true},
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
        {"keys flushed", &stage::flush, &stage::nothing, true, true},
        {"databases swapped", &stage::swap_databases, &stage::nothing, true, true},
        {"demoted and promoted", &stage::promote, &stage::nothing, true, true},
        {"clock ahead", &stage::clock_ahead, &stage::clock_back, true},
    };
    return all;
}

stage::stage(scene what, chance& from) : scene_{what}, chance_{from}
{
    for (std::size_t index = 0; index < scene_.masters; ++index)
    {
        one_master& made = masters_.emplace_back();
        if (scene_.keys == keeping::broken)
        {
            made.clock = std::make_unique<test::settable_clock>(SETTABLE_CLOCK_PRELOAD);
        }
        made.server = std::make_unique<test::server>(options_for(scene_, made.clock.get()));
        made.proxy = std::make_unique<test::proxy>(made.server->port());
    }
    if (is_guarded(scene_.keys))
    {
        provision();
    }
    clients_.resize(scene_.clients);
    for (one_client& each : clients_)
    {
        start_client(each);
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

/// Returns whether each master has an armed marker for its present incarnation.
bool stage::are_all_armed()
{
    return std::all_of(
        masters_.begin(), masters_.end(),
        [](one_master& each)
        {
            if (each.heal != nullptr)
            {
                return false; // It may not answer.
            }
            const std::string marker = each.server->command({"GET", "lock::redlock-guard"}).text;
            const std::string info = each.server->command({"INFO", "replication"}).text;
            const std::string id = marker.substr(marker.rfind(' ') + 1);
            return marker.find(" armed ") != std::string::npos &&
                   info.find("master_replid:" + id) != std::string::npos;
        });
}

bool stage::may_happen(const fault& what)
{
    if (!is_guarded(scene_.keys))
    {
        return !what.breaks_assumptions || scene_.keys == keeping::broken;
    }
    // One of two masters isn't a minority: if it comes back empty, it takes an operator.
    return what.loses_keys
               ? scene_.keys == keeping::guarded_at_random || (scene_.masters > 2 && are_all_armed())
               : !what.breaks_assumptions;
}

void stage::start_client(one_client& one)
{
    std::vector<std::string> arguments{
        NEMESIS_CLIENT, std::to_string(chance_.number()), std::to_string(scene_.claim.count()),
        std::to_string(scene_.resources), is_guarded(scene_.keys) ? "guarded" : "plain"};
    for (const one_master& each : masters_)
    {
        arguments.push_back(each.proxy->url());
    }
    one.process = test::child_process{arguments, fmt::format("{}/{}", directory_.path(), ++started_)};
    one.stopped_until = 0;
}

void stage::harm(std::map<std::string, std::size_t>& counts)
{
    if (scene_.own_network && chance_.below(30) == 0)
    {
        ++counts["network unplugged"];
        unplug();
        return;
    }
    if (chance_.below(8) == 0)
    {
        harm_client(counts);
        return;
    }
    const fault& what = faults()[chance_.below(faults().size())];
    const std::chrono::milliseconds longest = std::array{100ms, 500ms, 2500ms}[chance_.below(3)];
    if (chance_.below(20) != 0)
    {
        counts[what.name] += harm_master(masters_[chance_.below(masters_.size())], what, longest) ? 1U : 0U;
        return;
    }
    for (one_master& each : masters_)
    {
        counts[what.name] += harm_master(each, what, longest) ? 1U : 0U;
    }
}

/// For all at once, and this process too: it does nothing else meanwhile.
void stage::unplug()
{
    plug_in(false);
    std::this_thread::sleep_for(chance_.between(50ms, 2500ms));
    plug_in(true);
}

void stage::harm_client(std::map<std::string, std::size_t>& counts)
{
    one_client& one = clients_[chance_.below(clients_.size())];
    if (one.stopped_until != 0)
    {
        return;
    }
    if (chance_.below(2) == 0)
    {
        ++counts["client killed"];
        one.process.kill();
        start_client(one);
        return;
    }
    ++counts["client stopped"];
    one.process.stop();
    one.stopped_until = now() + count(chance_.between(50ms, longest_ttl));
}

bool stage::harm_master(one_master& one, const fault& what, std::chrono::milliseconds longest)
{
    if (one.heal != nullptr || !may_happen(what))
    {
        return false;
    }
    (this->*what.begin)(one);
    const bool stays_away = scene_.keys == keeping::away && what.begin == &stage::kill;
    one.suffers_until = now() + count(stays_away ? longest_ttl : chance_.between(10ms, longest));
    one.heal = what.end;
    return true;
}

void stage::heal_what_is_due()
{
    for (one_master& each : masters_)
    {
        if (each.heal != nullptr && now() >= each.suffers_until)
        {
            (this->*std::exchange(each.heal, nullptr))(each);
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
            masters_.begin(), masters_.end(), [](const one_master& each) { return each.heal != nullptr; });
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

bool stage::end_clients()
{
    for (one_client& each : clients_)
    {
        ::kill(each.process.pid(), SIGTERM);
    }
    return std::all_of(
        clients_.begin(), clients_.end(),
        [](const one_client& each) { return each.process.wait_for_end(60s); });
}

std::vector<diary> stage::diaries() const
{
    std::vector<diary> all;
    for (std::size_t number = 1; number <= started_; ++number)
    {
        std::ifstream file{fmt::format("{}/{}", directory_.path(), number)};
        const std::string text{std::istreambuf_iterator<char>{file}, {}};
        all.push_back(read_diary(fmt::format("client {}", number), text));
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
