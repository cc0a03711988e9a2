// SPDX-License-Identifier: BSL-1.0
// The reference: the least that a client on epoll can do. Commands formatted once, one write to each master,
// and it goes on at the majority. No deadlines, no retries, no reconnects, no second client: it is no lock to
// be used.
#pragma once

#include "client.hpp"

#include "support/loopback.hpp"
#include "support/server.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::bench
{

/// Throws when a master refuses, breaks off or doesn't answer: the reference is only measured with healthy
/// ones.
class raw_client final : public client
{
  public:
    explicit raw_client(std::span<test::server> masters);

    stretch run(const work& what) override;

  private:
    struct connection
    {
        test::unique_fd socket;
        std::uint64_t answered = 0; // Replies so far; the n-th belongs to the n-th command.
        char first = '\0';          // Of the reply that is being read, '\0' before it.
    };

    void make_owner_id();
    void ask_all(std::string_view command, char expected);
    void await_all();
    void wait();
    void take_replies(connection& from);

    std::string acquire_;
    std::string release_;
    char* owner_in_acquire_ = nullptr;
    char* owner_in_release_ = nullptr;

    test::unique_fd epoll_;
    std::vector<connection> connections_;
    std::uint64_t asked_ = 0; // Commands so far, to each master.
    char expected_ = '\0';    // How the reply to the last of them begins.
    std::size_t votes_ = 0;   // For the last of them.
};

} // namespace redlock::bench
