// SPDX-License-Identifier: BSL-1.0
// The errors: one category for what an operation ended with, one for why a master gave no vote.
#pragma once

#include <redlock/detail/export.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>
#include <boost/system/system_error.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace redlock
{

using boost::system::error_code;
using boost::system::system_error;

/// What an operation on a lock ended with. A cancelled one ends with `asio::error::operation_aborted`
/// instead.
enum class errc
{
    held_by_other = 1,    ///< A quorum answered, and too many masters hold the resource for another owner.
    no_quorum,            ///< Fewer than a quorum of the masters answered granted or held.
    validity_exhausted,   ///< A quorum granted, but no more than `min_validity` of the ttl was left.
    lease_lost,           ///< The lease can no longer be shown to be valid, or not for long enough.
    hold_limit_reached,   ///< The lease was kept for as long as `max_hold` allows.
    not_held,             ///< The lease is empty, or was released before.
    unconfirmed,          ///< A release wasn't confirmed by a quorum in time. The ttl frees what is left.
    too_many_operations,  ///< As many run or wait as `max_operations` or `max_waiting_acquires` allow.
    closed,               ///< The manager is shut down or has gone.
    invalid_resource,     ///< The name of the resource is empty or too long.
    invalid_ttl,          ///< The ttl leaves no validity, or is larger than a server takes.
    invalid_wait,         ///< The wait is negative.
    invalid_min_validity, ///< The min_validity is negative, or above what the ttl can leave.
    invalid_max_rounds,   ///< The number of rounds is zero.
    invalid_max_hold,     ///< The max_hold is zero or negative.
    invalid_schedule,     ///< extend_every and stop_margin leave no time for an extension that has to be
                          ///< repeated.
    invalid_master,       ///< The address or URL of a master can't be used.
    invalid_config        ///< Another option of the manager can't be used.
};

/// Why a master gave no vote, where the system's own error codes don't say it.
enum class master_errc
{
    not_connected = 1, ///< No connection to it was ready.
    timed_out,         ///< It didn't answer within the node timeout.
    unresponsive,      ///< Its oldest command went unanswered for `dead_after`; the connection was closed.
    connect_timed_out, ///< It didn't finish the connection's handshake within `connect_timeout`.
    connection_lost,   ///< It closed the connection.
    too_many_waiting,  ///< So many bytes wait to be written to it as `max_waiting_bytes` allows.
    too_many_owed,     ///< It owes as many answers to releases as `max_owed` allows.
    tls_failed,        ///< TLS didn't come about, or broke: it may want a client certificate, or speaks none.
    certificate_untrusted,  ///< Its certificate leads to no authority that is trusted.
    certificate_expired,    ///< Its certificate is expired, or not valid yet.
    certificate_wrong_name, ///< Its certificate is made out to another host.
    protocol_error,         ///< It sent what isn't RESP, or what no server answers to that command.
    authentication_failed,  ///< It refused the user or password, or wants one.
    no_permission,          ///< Its ACL doesn't allow the user a command that locking needs.
    loading,                ///< It is loading its data.
    busy,                   ///< It is running a slow script.
    read_only,              ///< It is a replica, or lost its master.
    no_replicas,            ///< It refuses writes because too few replicas follow it.
    misconfigured,          ///< It refuses writes because it can't save its data.
    out_of_memory,          ///< It refuses writes because its memory is full.
    too_many_clients,       ///< It has as many clients as it allows.
    cluster_node,           ///< It belongs to a Redis Cluster, whose nodes aren't independent masters.
    same_server,            ///< It is the same server as another master of this manager.
    command_failed          ///< It answered with another error.
};

/// What to do about an error, whatever it is in detail: `if (error == redlock::condition::retryable)`. Compares with `errc`,
/// `master_errc` and the system's errors of a connection; an error may be in several, or in none (`closed`, a cancelled
/// operation).
enum class condition
{
    contended = 1, ///< Others hold the resource, and that is normal.
    unavailable, ///< Too few masters answered, or not in time: the servers or the network have to be looked at.
    lost,        ///< A lease that was held no longer is: the work has to stop.
    misuse,      ///< An argument or a setting is wrong: trying again changes nothing.
    retryable    ///< The same call may well succeed later.
};

/// The name of the enumerator, for logs and metrics: "held_by_other". It never changes. "unknown" for a value that none
/// has. Thread-safe.
REDLOCK_API std::string_view to_string(errc value) noexcept;
REDLOCK_API std::string_view to_string(master_errc value) noexcept;
REDLOCK_API std::string_view to_string(condition value) noexcept;
/// The same of any error: "success" for none, "operation_aborted" for a cancelled operation, "other" for an error that isn't
/// of this library. Thread-safe.
REDLOCK_API std::string_view error_name(const error_code& error) noexcept;

/// The category of `errc`. Thread-safe.
REDLOCK_API const boost::system::error_category& error_category() noexcept;
/// The category of `master_errc`. Thread-safe.
REDLOCK_API const boost::system::error_category& master_category() noexcept;

/// The category of `condition`. Thread-safe.
REDLOCK_API const boost::system::error_category& condition_category() noexcept;

inline error_code make_error_code(errc value) noexcept
{
    return {static_cast<int>(value), error_category()};
}

inline error_code make_error_code(master_errc value) noexcept
{
    return {static_cast<int>(value), master_category()};
}

inline boost::system::error_condition make_error_condition(condition value) noexcept
{
    return {static_cast<int>(value), condition_category()};
}

/// The exception of a failed acquire (`with_report`), and of an `async_with_lock` that got no lease or lost it.
///
/// `code()` is the error. `what()` names the resource, then says what the report says: the result, each master's vote with its
/// reason, the limits, and the value and range of a refused argument. `resource()` tells the lock of an `async_with_lock` from
/// another one that its body acquires.
class REDLOCK_API lock_error : public system_error
{
  public:
    /// Without a `text`, `what()` has the error's message.
    explicit lock_error(const error_code& error, std::string resource = {}, std::string_view text = {});
    lock_error(const lock_error&) noexcept = default;
    lock_error& operator=(const lock_error&) noexcept = default;
    ~lock_error() override;

    /// The name that was to be locked, without the key prefix. Valid as long as a copy of the exception exists.
    const std::string& resource() const noexcept;
    const char* what() const noexcept override;

  private:
    struct contents;
    std::shared_ptr<const contents> contents_; // Shared, so that copying doesn't throw.
};

} // namespace redlock

namespace boost::system
{

/// Lets an `error_code` be made from it, and be compared with it.
template <>
struct is_error_code_enum<redlock::errc> : std::true_type
{
};

/// Lets an `error_code` be made from it, and be compared with it.
template <>
struct is_error_code_enum<redlock::master_errc> : std::true_type
{
};

/// Lets an `error_code` be compared with it.
template <>
struct is_error_condition_enum<redlock::condition> : std::true_type
{
};

} // namespace boost::system

namespace std
{

/// Lets a `std::error_code` be made from it, and be compared with it.
template <>
struct is_error_code_enum<redlock::errc> : true_type
{
};

/// Lets a `std::error_code` be made from it, and be compared with it.
template <>
struct is_error_code_enum<redlock::master_errc> : true_type
{
};

/// Lets a `std::error_code` be compared with it.
template <>
struct is_error_condition_enum<redlock::condition> : true_type
{
};

} // namespace std
