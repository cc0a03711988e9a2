// SPDX-License-Identifier: BSL-1.0
// The replies of all masters to the commands of provisioning.
#pragma once

#include "core/provision_plan.hpp"
#include "manager/operations/broadcast_query.hpp"
#include "net/arming_commands.hpp"
#include "net/connection.hpp"
#include "net/guard_scripts.hpp"
#include "net/provision_commands.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::manager
{

/// What the masters have shown, or why they haven't.
class sights final : public reply_collector
{
  public:
    sights(std::size_t masters, runtime::async_event& listener)
        : reply_collector{masters, listener}, seen_(masters), failures_(masters)
    {
        for (std::size_t master = 0; master < masters; ++master)
        {
            seen_[master].is_known = false;
            failures_[master].reason = master_errc::timed_out;
        }
    }

    const std::vector<core::provision_sight>& seen() const noexcept { return seen_; }
    const net::failure& failure_of(std::size_t master) const { return failures_[master]; }

  private:
    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        if (reply.is_error())
        {
            failures_[master] = {net::reason_of(core::classify(reply.text())), std::string{reply.text()}};
            return true;
        }
        std::optional<core::provision_sight> shown = net::read_provision_look(reply);
        if (!shown)
        {
            failures_[master] = {master_errc::protocol_error, {}};
            return false;
        }
        failures_[master] = {};
        seen_[master] = *std::move(shown);
        return true;
    }
    void take_failure(std::size_t master, const net::answer& none) noexcept override
    {
        failures_[master] = {none.reason, std::string{none.text}};
        if (none.reason == master_errc::read_only) // Found by the handshake.
        {
            seen_[master].is_known = true;
            seen_[master].is_master = false;
        }
    }

    std::vector<core::provision_sight> seen_;
    std::vector<net::failure> failures_;
};

/// The detail of an answer `net::databases_unknown`.
inline constexpr const char* unknown_databases = "it refuses SELECT, so another database may have a marker";

/// The answer of one master to a change.
struct change_answer
{
    error_code reason = master_errc::timed_out; // Empty if it has done as asked.
    int refusal = 0;                            // The negative answer of the script; 0 for none.
    std::string detail;
    std::string marker;
    std::uint64_t counter = 0;
};

/// Returns whether the answer is that of a master that has another marker, or was restarted.
inline bool is_overtaken(const change_answer& answer) noexcept
{
    return answer.refusal == net::guard_differs || answer.refusal == net::incarnation_differs;
}

/// The answers to a change of several masters.
class changes final : public reply_collector
{
  public:
    using reader = net::arming_reply (*)(const resp::reply&) noexcept;

    changes(std::size_t masters, std::size_t asked, reader read, runtime::async_event& listener)
        : reply_collector{asked, listener}, read_{read}, answers_(masters)
    {
    }

    const change_answer& of(std::size_t master) const { return answers_[master]; }

  private:
    bool take(std::size_t master, const resp::reply& reply) noexcept override
    {
        const net::arming_reply found = read_(reply);
        change_answer& answer = answers_[master];
        answer.reason = found.reason;
        answer.refusal = found.refusal;
        answer.detail = found.detail;
        answer.marker = found.marker;
        answer.counter = found.counter;
        return found.reason != master_errc::protocol_error;
    }
    void take_failure(std::size_t master, const net::answer& none) noexcept override
    {
        answers_[master].reason = none.reason;
        answers_[master].detail = none.text;
    }

    reader read_;
    std::vector<change_answer> answers_;
};

} // namespace redlock::manager
