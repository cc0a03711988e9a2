// SPDX-License-Identifier: BSL-1.0
// Ready-made behaviours of a scripted server: one that is honest, and the ways in which a server can
// misbehave.
#pragma once

#include "honest_master.hpp"
#include "session.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace redlock::test
{

/// Serves one connection from beginning to end. Called on a thread of its own for each connection, so what it
/// shares with other connections needs a lock.
using behaviour = std::function<void(session&)>;

/// Says what is answered to a command.
using command_script = std::function<answer(session&, const command&)>;

/// Says what is answered to a command, given the bytes that an honest master would answer.
using alteration = std::function<answer(session&, const command&, std::string honest_bytes)>;

/// Which commands a misbehaviour is for.
enum class applies
{
    from_the_start, ///< all, the handshake too
    to_locks,       ///< SET, EVALSHA and EVAL; all others are answered honestly
};

/// Whether a command is one of SET, EVALSHA, EVAL.
bool is_lock_command(const command& words);

/// Asks the script for each command's answer.
behaviour answering(command_script script);

/// Answers as a master does; see `honest_master` for what it knows.
behaviour honest(honest_options options = {});
/// Answers as this master, whose state the test can look into and which several servers in turn can be.
behaviour honest(std::shared_ptr<honest_master> master);

// Each of these is an honest master but for what is said. Without one given, each has one of its own.

/// Honest but for what the alteration makes of the answers.
behaviour altered(alteration change, applies when, std::shared_ptr<honest_master> master = {});
/// Reads and never answers. With `to_locks`: from the first lock command of a connection on, to nothing at
/// all. What it reads is not carried out.
behaviour silent(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Answers with these bytes, and doesn't carry the command out.
behaviour says(std::string bytes, applies when, std::shared_ptr<honest_master> master = {});
/// Answers like an HTTP server and closes.
behaviour speaks_http(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Answers with bytes that mean nothing in RESP.
behaviour garbage(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Announces a bulk string of 4 GiB, and begins it.
behaviour
huge_bulk_length(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Sends a simple string of at least this many bytes without a line end.
behaviour endless_line(
    std::size_t bytes, applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Sends every answer twice, at once.
behaviour answers_twice(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Sends half of the answer and closes.
behaviour
closes_in_the_middle(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Carries the command out and closes instead of answering.
behaviour closes_instead(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Answers and closes.
behaviour closes_after(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});
/// Answers this much later.
behaviour late(
    std::chrono::milliseconds by, applies when = applies::from_the_start,
    std::shared_ptr<honest_master> master = {});
/// Answers in single bytes.
behaviour in_single_bytes(applies when = applies::from_the_start, std::shared_ptr<honest_master> master = {});

} // namespace redlock::test
