// SPDX-License-Identifier: BSL-1.0
// What each master answered in a round, how long it took, and why the round was decided as it was.
#pragma once

#include <redlock/detail/export.hpp>
#include <redlock/error.hpp>
#include <redlock/vote.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock
{

/// Which verb a round belongs to.
enum class operation : std::uint8_t
{
    acquire, ///< SET NX PX.
    extend,  ///< Compare and set the expiry.
    release  ///< Compare and delete.
};

/// The word for an operation: "acquire". Thread-safe.
REDLOCK_API std::string_view to_string(operation value) noexcept;

/// A short text of fixed size: what a server said, with everything that isn't printable escaped.
class short_text
{
  public:
    static constexpr std::size_t capacity = 95;

    short_text() noexcept = default;
    /// Takes as much of `raw` as fits once it is escaped.
    REDLOCK_API explicit short_text(std::string_view raw) noexcept;

    std::string_view view() const noexcept { return {bytes_.data(), size_}; }

  private:
    std::array<char, capacity> bytes_{};
    std::uint8_t size_ = 0;
};

/// One master's part in a round.
struct master_report
{
    redlock::vote vote = redlock::vote::pending;
    /// From the start of the round until this vote was known.
    std::chrono::nanoseconds elapsed{0};
    /// Why there is no answer; empty for granted and held.
    error_code reason;
    /// What the server or the connection said to it; often empty. Never holds a password.
    short_text detail;
};

/// The last round of an operation. It is written once, just before the operation completes.
///
/// A plain value of bounded size: at most `max_masters` entries. Not thread-safe: it belongs to the operation
/// until that has completed, and to the caller after it.
class REDLOCK_API report
{
  public:
    redlock::operation operation = redlock::operation::acquire;
    /// What the operation ended with; empty for success.
    error_code result;
    /// How many rounds the operation took; 0 if it was refused before the first.
    std::uint32_t rounds = 0;
    /// From the start of the last round until it was decided.
    std::chrono::nanoseconds elapsed{0};
    /// The deadline of each master in the last round, from its start.
    std::chrono::milliseconds node_timeout{0};
    /// What was left of the ttl when the round was decided; 0 unless the lease was granted or extended.
    std::chrono::nanoseconds validity{0};
    /// What was wrong with an argument and what is allowed; empty unless `result` is one of
    /// `errc::invalid_…`.
    std::string complaint;

    /// The votes, in the order in which the masters were configured. Empty if there was no round.
    std::span<const master_report> masters() const noexcept { return {masters_.data(), count_}; }
    /// The master's address without credentials: "redis://10.0.0.1:6379". `index` is below
    /// `masters().size()`.
    std::string_view name(std::size_t index) const;
    /// How many masters voted so.
    std::size_t count(vote value) const noexcept;
    /// How many masters make a quorum.
    std::size_t quorum() const noexcept { return quorum_of(count_); }
    /// Of a release: the key was gone before it, on a quorum of the masters. Success all the same.
    bool already_gone() const noexcept;
    /// All of it in a few lines for a person: the result, then one line for each master.
    std::string to_string() const;

    using master_names = std::vector<std::string>;
    /// Called by the manager: sizes the report for its masters.
    void assign(std::shared_ptr<const master_names> names, std::span<const master_report> votes);

  private:
    std::shared_ptr<const master_names> names_;
    std::array<master_report, max_masters> masters_{};
    std::size_t count_ = 0;
};

/// Writes `to_string()`.
REDLOCK_API std::ostream& operator<<(std::ostream& out, const report& value);

} // namespace redlock
