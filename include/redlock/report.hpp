// SPDX-License-Identifier: BSL-1.0
// The report of a round: each master's vote, its latency, and the reason for the result.
#pragma once

#include <redlock/detail/export.hpp>
#include <redlock/error.hpp>
#include <redlock/vote.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock
{

namespace detail
{

/// The library's access to the private members of the public API: src/manager/access.hpp.
struct access;

/// The addresses of the masters without credentials, in the order of the configuration.
using master_names = std::vector<std::string>;

} // namespace detail

/// The operation that a round belongs to.
enum class operation : std::uint8_t
{
    acquire, ///< SET NX PX.
    extend,  ///< Compare and set the expiry.
    release  ///< Compare and delete.
};

/// Returns the name of the operation, such as "acquire". Thread-safe.
REDLOCK_API std::string_view to_string(operation value) noexcept;

/// A string of bounded size for a server's message. Non-printable bytes are escaped, so it never breaks a log line.
class short_text
{
  public:
    static constexpr std::size_t capacity = 95;

    short_text() noexcept = default;
    /// Escapes `raw`, and truncates the result to `capacity` bytes.
    REDLOCK_API explicit short_text(std::string_view raw) noexcept;

    std::string_view view() const noexcept { return {bytes_.data(), size_}; }

  private:
    std::array<char, capacity> bytes_{};
    std::uint8_t size_ = 0;
};

/// The vote of one master in a round.
struct master_report
{
    redlock::vote vote = redlock::vote::pending;
    /// The time from the start of the round until the vote was known.
    std::chrono::nanoseconds elapsed{0};
    /// The reason why there is no answer; empty for `vote::granted` and `vote::denied`.
    error_code reason;
    /// The server's message, escaped; often empty. Never contains a password.
    short_text detail;
};

/// The position of a waiting acquire in the queue of its resource, as the queue master last reported it.
struct queue_position
{
    std::size_t master; ///< The index of the queue master in `config::masters`.
    /// The number of clients ahead in the queue, without those at its head that are late; 0 for the first one.
    std::size_t ahead;
    std::size_t waiting; ///< The number of clients in the queue, this one included.
    /// The remaining time to live of the resource's key at the queue master. Empty if the key doesn't exist or doesn't
    /// expire.
    std::optional<std::chrono::milliseconds> key_expires_in;

    bool operator==(const queue_position&) const = default;
};

/// The report of an operation's last round. A value of bounded size: at most `max_masters` entries.
///
/// Thread safety: not thread-safe. It must not be accessed until the operation has completed.
class REDLOCK_API report
{
  public:
    redlock::operation operation = redlock::operation::acquire;
    /// The result of the operation; empty for success.
    error_code result;
    /// The number of rounds of the operation; 0 if it was refused before the first.
    std::uint32_t rounds = 0;
    /// The time from the start of the last round until it was decided.
    std::chrono::nanoseconds elapsed{0};
    /// The time limit of each master in the last round, counted from its start.
    std::chrono::milliseconds node_timeout{0};
    /// The remaining validity of the lease after an acquire or extension; 0 if there is none, for a release, and in a
    /// `round_decided` event of a failed extension.
    std::chrono::nanoseconds validity{0};
    /// The fencing token that the votes of an acquire gave it in guarded mode; empty otherwise. Only if `result` is a
    /// success, there is a lease with it. See `lease::fencing_token`.
    std::optional<std::uint64_t> fencing_token;
    /// The last known position of an acquire that waited in a queue. Empty if it didn't wait, or without a queue master.
    std::optional<queue_position> queue;
    /// The invalid argument, with its value and the allowed range; empty unless `result` is one of the
    /// `errc::invalid_...` errors.
    std::string argument_error;

    /// Returns the votes in the order of `config::masters`. Empty if there was no round.
    std::span<const master_report> masters() const noexcept { return {masters_.data(), count_}; }
    /// Returns the master's address without credentials, such as "redis://10.0.0.1:6379". `index` must be less than
    /// `masters().size()`.
    std::string_view name(std::size_t index) const;
    /// Returns the number of masters with this vote.
    std::size_t count(vote value) const noexcept;
    /// Returns the number of masters that make a quorum.
    std::size_t quorum() const noexcept { return quorum_of(count_); }
    /// Returns true for a release whose key was already missing, or had another owner, on a quorum of masters. Such a
    /// release succeeds.
    bool already_gone() const noexcept;
    /// Returns the report as text: the result, followed by one line per master.
    std::string to_string() const;

  private:
    friend struct detail::access;

    void assign(std::shared_ptr<const detail::master_names> names, std::span<const master_report> votes);

    std::shared_ptr<const detail::master_names> names_;
    std::array<master_report, max_masters> masters_{};
    std::size_t count_ = 0;
};

/// Writes `value.to_string()`.
REDLOCK_API std::ostream& operator<<(std::ostream& out, const report& value);

} // namespace redlock
