// SPDX-License-Identifier: BSL-1.0
// The commands and the messages of the wait queue.
#pragma once

#include "net/command.hpp"
#include "net/decimal.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::net
{

/// With which the keys of all queues begin, and no key of a resource.
inline constexpr std::string_view queue_key_prefix = "redlock-queue:";

/// A client in the queue of a resource. The number identifies it among those of its manager.
struct queue_member
{
    std::string_view manager_id;
    std::uint64_t number;
    bool receives; // The manager is subscribed to its channel at the queue master.
};

/// Returns the channel of a manager.
std::string queue_channel(std::string_view manager_id);

/// The name of a client in a queue: `<manager id>:<number>`, with a leading "-" if it receives no messages.
class member_name
{
  public:
    explicit member_name(const queue_member& named) noexcept
    {
        const decimal number{named.number};
        append(named.receives ? "" : "-");
        append(named.manager_id);
        append(":");
        append(number.view());
    }
    std::string_view view() const noexcept { return {bytes_.data(), size_}; }

  private:
    void append(std::string_view part) noexcept
    {
        std::memcpy(bytes_.data() + size_, part.data(), part.size());
        size_ += part.size();
    }

    std::array<char, 1 + claim::owner_id_length + 1 + 20> bytes_{};
    std::size_t size_ = 0;
};

/// The arguments of `ask_script`, apart from the owner id.
struct question
{
    queue_member member;
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds waited;
    std::chrono::milliseconds liveness; // 0: the client isn't entered in the queue.
    std::chrono::milliseconds grace;
};

void append_ask(std::string& out, const claim& of, const question& asked, script_form form);

/// Appends the release at the end of a lease, which wakes a waiting client.
void append_queue_release(
    std::string& out, const claim& of, std::chrono::milliseconds grace, script_form form);
/// Appends the release of a client that doesn't wait any more. `member` is empty if it wasn't in the queue.
void append_leave(
    std::string& out, const claim& of, std::chrono::milliseconds grace,
    const std::optional<queue_member>& member, script_form form = script_form::digest);

/// Appends the release of a round that was lost although the queue master granted it. The client keeps its position, and
/// is served first until its pause has ended.
void append_lost_release(
    std::string& out, const claim& of, const question& asked, std::chrono::milliseconds pause);

/// The cause of a message.
enum class wake_reason : std::uint8_t
{
    released, // The resource was released.
    kicked    // Another client found the resource free.
};

/// A message that wakes a waiting client.
struct wake_up
{
    wake_reason why;
    std::uint64_t number; // Of the client.
};

/// Returns the message in a push on this channel; empty for any other push.
std::optional<wake_up> read_wake_up(const resp::reply& push, std::string_view channel) noexcept;
/// The message that a manager publishes to itself, to see whether it is received.
inline constexpr std::string_view subscription_probe = "subscribed";
/// Returns whether a push confirms the subscription of this channel.
bool confirms_subscription(const resp::reply& push, std::string_view channel) noexcept;
bool is_subscription_probe(const resp::reply& push, std::string_view channel) noexcept;

/// Asks a server which commands of the queue it refuses. The key of the trial is that of the queue of a resource without a name:
/// a user who may use all queues of the prefix may use it.
void append_queue_trial(std::string& out, std::string_view key_prefix);
/// A command that a master has refused. The views are valid as long as the reply.
struct refused_command
{
    std::string_view name; // Empty for none.
    std::string_view error;
};
/// Returns "it refuses <command> (<its error>)"; empty for none.
std::string in_words(const refused_command& refused);
/// What a trial has found: whether DEL is refused, and the first other command that is.
struct queue_refusals
{
    refused_command deletion;
    refused_command question;
};
/// Translates the reply to a trial; empty if it can't be one. Errors that pass, or that are about a key, don't count.
std::optional<queue_refusals> read_queue_trial(const resp::reply& reply) noexcept;

} // namespace redlock::net
