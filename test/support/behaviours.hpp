// SPDX-License-Identifier: BSL-1.0
// Ready-made behaviours of a scripted server: an honest one, and kinds of misbehaviour.
#pragma once

#include "fake_redis.hpp"
#include "session.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace redlock::test
{

/// Serves one connection from beginning to end. Each connection has its own thread, so state that connections share
/// needs a lock.
using behaviour = std::function<void(session&)>;

/// Returns the answer to a command.
using command_script = std::function<answer(session&, const command&)>;

/// Returns the answer to a command, given the bytes of an honest master's answer.
using alteration = std::function<answer(session&, const command&, std::string honest_bytes)>;

/// The commands that a misbehaviour affects.
enum class applies
{
    from_the_start, ///< all, including the handshake
    to_locks,       ///< SET, EVALSHA, and EVAL with a key; all others are answered honestly
};

/// True for SET, EVALSHA, and EVAL with a key: the one without is part of the handshake.
bool is_lock_command(const command& words);

/// Answers each command as the script says.
behaviour answering(command_script script);

/// Answers as a master does; see `fake_redis` for the commands.
behaviour honest(honest_options options = {});
/// Answers as this master. The test can inspect its state, and several servers can share it one after the other.
behaviour honest(std::shared_ptr<fake_redis> master);

// Each of these is an honest master with one change. Without a given master, each has its own.

/// Changes the answers by `change`.
behaviour altered(alteration change, applies when, std::shared_ptr<fake_redis> master = {});
/// Reads and never answers. With `to_locks`: nothing is answered from the first lock command of a connection. The
/// commands that it reads are not carried out.
behaviour silent(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Answers with these bytes, and doesn't carry out the command.
behaviour says(std::string bytes, applies when, std::shared_ptr<fake_redis> master = {});
/// Answers like an HTTP server and closes.
behaviour speaks_http(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Answers with bytes that aren't RESP.
behaviour garbage(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Announces a bulk string of 4 GiB, and sends its beginning.
behaviour huge_bulk_length(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Sends a simple string of at least this many bytes without a line end.
behaviour endless_line(
    std::size_t bytes, applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Sends every answer twice, in a single write.
behaviour answers_twice(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Sends half of the answer and closes the connection.
behaviour
closes_in_the_middle(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Carries out the command and closes the connection instead of answering.
behaviour closes_instead(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Answers and closes the connection.
behaviour closes_after(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});
/// Answers after this delay.
behaviour late(
    std::chrono::milliseconds by, applies when = applies::from_the_start,
    std::shared_ptr<fake_redis> master = {});
/// Answers in single bytes.
behaviour in_single_bytes(applies when = applies::from_the_start, std::shared_ptr<fake_redis> master = {});

} // namespace redlock::test
