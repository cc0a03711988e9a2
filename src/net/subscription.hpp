// SPDX-License-Identifier: BSL-1.0
// The subscription of a manager's channel on one connection, through which its waiting clients are woken. No I/O.
#pragma once

#include "resp/parser.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::net
{

/// A request consists of SUBSCRIBE, PUBLISH of a message to ourselves, which shows whether messages arrive, and HELLO.
/// SUBSCRIBE is answered by a push, but refused by a reply, so the number of replies to the first two isn't known. A
/// server that gives one too few or too many would shift all later ones, and thus votes. HELLO ends them: its reply is the
/// only map among them, and a server that is busy answers it. Since Redis 6.2.2 no ACL forbids it. To a server that
/// refuses it to a user who has logged in, nothing is requested.
///
/// The caller passes in each push, and each reply while a request is pending.
class subscription
{
  public:
    static constexpr const char* complaint =
        "it refuses SUBSCRIBE, PUBLISH or HELLO, so waiting clients poll";
    static constexpr const char* misfit = "it sent replies that don't fit SUBSCRIBE, PUBLISH and HELLO";

    /// The server speaks RESP3.
    void allow() noexcept { state_ = state::possible; }
    /// The server refuses HELLO after the log-in.
    void refuse() noexcept { state_ = state::refused; }
    bool is_possible() const noexcept { return state_ != state::unsupported; }
    /// Returns whether messages arrive: one of ours had a receiver.
    bool is_proven() const noexcept { return state_ == state::proven; }
    /// Returns whether the server has refused it, or its messages don't arrive.
    bool is_refused() const noexcept { return state_ == state::refused; }
    /// Returns whether the server refuses it for now. Redis 8.6 does while its memory is full.
    bool is_put_off() const noexcept { return state_ == state::put_off; }

    /// Appends a request.
    void request(std::string& out, std::string_view channel);
    /// Returns whether the next reply is one to a request.
    bool is_pending() const noexcept { return pending_; }
    /// Handles a reply to a request. Returns false if it can't be one.
    bool on_reply(const resp::reply& reply) noexcept;
    /// Handles a push. Returns whether a request has led to it.
    bool on_push(const resp::reply& push, std::string_view channel) noexcept;

  private:
    enum class state : std::uint8_t
    {
        unsupported, // The server speaks RESP2.
        possible,
        proven,
        refused,
        put_off
    };
    enum class answer : std::uint8_t
    {
        number, // Of receivers.
        refused,
        refused_for_now
    };

    state end_request() const noexcept;

    state state_ = state::unsupported;
    bool pending_ = false;
    bool confirmed_ = false; // By a push, on this connection.
    std::size_t count_ = 0;
    std::array<answer, 2> answers_{}; // To SUBSCRIBE, unless it was confirmed, and PUBLISH.
    bool has_receiver_ = false;
};

} // namespace redlock::net
