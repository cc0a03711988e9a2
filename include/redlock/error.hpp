// SPDX-License-Identifier: BSL-1.0
// Errors: one category for the result of an operation, one for the reason why a master gave no vote.
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

/// The result of an operation. A cancelled operation ends with `asio::error::operation_aborted` instead.
enum class errc
{
    held_by_other = 1,    ///< A quorum answered, and too many masters hold the key for another client.
    no_quorum,            ///< Fewer than a quorum of the masters answered, or confirmed an extension.
    validity_exhausted,   ///< A quorum granted, but too late: `min_validity` or less was left.
    lease_lost,           ///< The lease isn't known to be valid any more, or not for long enough.
    hold_limit_reached,   ///< The lease was held for `max_hold`.
    not_held,             ///< The lease is empty or was released.
    unconfirmed,          ///< No quorum confirmed the release in time. The ttl frees the remaining keys.
    too_many_operations,  ///< `max_operations` or `max_waiting_acquires` was reached.
    closed,               ///< The manager is being shut down, was shut down or was destroyed.
    invalid_resource,     ///< The name of the resource is empty, longer than 1024 bytes, or reserved.
    invalid_ttl,          ///< It leaves no validity, or exceeds 100 years or a guarded group's `max_ttl`.
    invalid_wait,         ///< `wait` is negative.
    invalid_min_validity, ///< `min_validity` is negative, or more than the ttl can leave.
    invalid_max_rounds,   ///< `max_rounds` is zero.
    invalid_max_hold,     ///< `max_hold` is zero or negative.
    invalid_schedule,     ///< `extend_every` and `stop_margin` leave no time to repeat a failed extension.
    invalid_master,       ///< The address of a master is malformed, or two addresses are the same server.
    invalid_config,       ///< Another option of the manager can't be used.
    provisioning_failed   ///< The group wasn't provisioned, at least not completely: see the report.
};

/// The reason why a master gave no vote or isn't connected. System errors, such as a refused connection, are reported
/// as they are.
enum class master_errc
{
    not_connected = 1,         ///< The first connection attempt hasn't finished.
    timed_out,                 ///< The master didn't answer within the node timeout.
    unresponsive,              ///< A command had no reply for `response_timeout`; the connection was closed.
    connect_timed_out,         ///< Connecting and the handshake took longer than `connect_timeout`.
    connection_lost,           ///< The master closed the connection.
    write_queue_full,          ///< The master's write queue has reached `max_write_queue_bytes`.
    too_many_outstanding_keys, ///< The master's outstanding keys have reached `max_outstanding_keys`.
    tls_failed,                ///< TLS couldn't be established, or failed later.
    certificate_untrusted,     ///< No trusted authority has signed the master's certificate.
    certificate_expired,       ///< The master's certificate has expired or isn't valid yet.
    certificate_wrong_name,    ///< The master's certificate is for another host.
    protocol_error,            ///< The server sent data that isn't RESP, or isn't a reply to the command.
    authentication_failed,     ///< The master refused the user name or password, or requires one.
    no_permission,             ///< The user's ACL forbids a command or key that locking needs.
    loading,                   ///< The master is loading its data.
    busy,                      ///< The master is running a slow script.
    read_only,                 ///< The server is a replica, connected to its master or not.
    no_replicas,               ///< The master refuses writes: too few replicas are connected.
    misconfigured,             ///< The master refuses writes: it can't persist its data.
    out_of_memory,             ///< The master refuses writes: its memory is full.
    too_many_clients,          ///< The master has reached its limit of clients.
    cluster_node,              ///< The server is a node of a Redis Cluster, not an independent master.
    same_server,               ///< The server is already connected as another master of this manager.
    not_provisioned,           ///< Guarded mode: the master belongs to no group.
    quarantined,               ///< Guarded mode: the master may have forgotten keys, and isn't armed yet.
    incarnation_changed, ///< Guarded mode: the master was restarted, emptied or promoted since it was armed.
    clock_ahead,         ///< Guarded mode: the master's clock is ahead of what it can be.
    other_group,    ///< Guarded mode: the master shows another group, other values of it, or has left it.
    not_a_member,   ///< Guarded mode: the master's name isn't on the record of the group.
    command_failed, ///< The master replied with an error that this library does not know.
    no_database     ///< The master has no database with the number in its address.
};

/// A class of errors that are handled in the same way: `if (error == redlock::condition::retryable)`.
///
/// Can be compared with `errc`, `master_errc` and the system's connection errors. An error may meet several
/// conditions, or none: `closed` and a cancelled operation meet none.
enum class condition
{
    contended = 1, ///< Another client holds the resource, which is normal.
    unavailable,   ///< Too few masters answered, or too late: check the servers and the network.
    lost,          ///< The lease is no longer held: stop the work.
    misuse,        ///< An argument or a setting is wrong: a retry fails in the same way.
    retryable      ///< The same call may succeed later.
};

/// Returns the name of the enumerator for logs and metrics, such as "held_by_other", or "unknown" for any other
/// value. Names never change. Thread-safe.
REDLOCK_API std::string_view to_string(errc value) noexcept;
REDLOCK_API std::string_view to_string(master_errc value) noexcept;
REDLOCK_API std::string_view to_string(condition value) noexcept;
/// Returns the name of any error: that of the enumerator, "success" for no error, "operation_aborted" for a cancelled
/// operation, and "other" for errors of other categories. Thread-safe.
REDLOCK_API std::string_view error_name(const error_code& error) noexcept;

/// Returns the category of `errc`. Thread-safe.
REDLOCK_API const boost::system::error_category& error_category() noexcept;
/// Returns the category of `master_errc`. Thread-safe.
REDLOCK_API const boost::system::error_category& master_category() noexcept;

/// Returns the category of `condition`. Thread-safe.
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

/// The exception of a failed acquire (`with_report`), and of an `async_with_lock` that acquired no lease or lost it.
///
/// `code()` returns the error. `what()` contains the name of the resource, and for a failed acquire the text of its
/// report: the result, each master's vote and reason, the limits, and the value and range of a refused argument. For a
/// lost lease it contains the error's message, and the votes of the last extension if that failed. In all other cases it
/// contains the error's message. `resource()` distinguishes the lock of an `async_with_lock` from other locks that its
/// body acquires. A call to a manager that has been shut down or destroyed throws it without a resource.
///
/// Programs may throw it as well: `throw redlock::lock_error{error, resource, report.to_string()}`.
class REDLOCK_API lock_error : public system_error
{
  public:
    /// Constructs an exception with this error. If `text` is empty, `what()` contains the error's message instead.
    explicit lock_error(const error_code& error, std::string resource = {}, std::string_view text = {});
    lock_error(const lock_error&) noexcept = default;
    lock_error& operator=(const lock_error&) noexcept = default;
    ~lock_error() override;

    /// Returns the name of the resource without the key prefix; may be empty. The reference is valid for as long as a
    /// copy of the exception exists.
    const std::string& resource() const noexcept;
    /// Returns the name of the resource, if there is one, and the text. Valid for as long as a copy of the exception
    /// exists.
    const char* what() const noexcept override;

  private:
    struct contents;
    std::shared_ptr<const contents> contents_; // Shared, so that copying doesn't throw.
};

} // namespace redlock

namespace boost::system
{

/// Enables implicit conversion to `error_code`, and comparison with it.
template <>
struct is_error_code_enum<redlock::errc> : std::true_type
{
};

/// Enables implicit conversion to `error_code`, and comparison with it.
template <>
struct is_error_code_enum<redlock::master_errc> : std::true_type
{
};

/// Enables comparison with `error_code`.
template <>
struct is_error_condition_enum<redlock::condition> : std::true_type
{
};

} // namespace boost::system

namespace std
{

/// Enables implicit conversion to `std::error_code`, and comparison with it.
template <>
struct is_error_code_enum<redlock::errc> : true_type
{
};

/// Enables implicit conversion to `std::error_code`, and comparison with it.
template <>
struct is_error_code_enum<redlock::master_errc> : true_type
{
};

/// Enables comparison with `std::error_code`.
template <>
struct is_error_condition_enum<redlock::condition> : true_type
{
};

} // namespace std
