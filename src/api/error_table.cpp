// SPDX-License-Identifier: BSL-1.0
// The table of the errors. A new error needs its row here, and nothing else in src/api.
#include "api/error_table.hpp"

#include <array>
#include <cstddef>

namespace redlock
{

namespace
{

namespace generic = boost::system::errc;

constexpr condition_set contended{.contended = true, .retryable = true};
constexpr condition_set unavailable{.unavailable = true, .retryable = true};
// The lease is released: a second release is refused.
constexpr condition_set unavailable_finally{.unavailable = true};
constexpr condition_set lost{.lost = true};
constexpr condition_set misuse{.misuse = true};
constexpr condition_set retryable{.retryable = true};

// The name is the enumerator's by construction.
#define REDLOCK_ERROR(Enumeration, Enumerator, ...)                                                          \
    row<Enumeration>                                                                                         \
    {                                                                                                        \
        Enumeration::Enumerator,                                                                             \
        {                                                                                                    \
            #Enumerator, __VA_ARGS__                                                                         \
        }                                                                                                    \
    }

template <class Value>
struct row
{
    Value value;
    error_entry entry;
};

constexpr std::array errors{
    REDLOCK_ERROR(
        errc, held_by_other, contended,
        "other clients hold the resource on too many masters: try again later, or raise wait"),
    REDLOCK_ERROR(
        errc, no_quorum, unavailable,
        "fewer than a quorum of the masters answered: see the report for the reason of each master"),
    REDLOCK_ERROR(
        errc, validity_exhausted, unavailable,
        "a quorum granted, but too little of the ttl was left: raise the ttl, or lower min_validity"),
    REDLOCK_ERROR(
        errc, lease_lost, lost,
        "the lease is no longer known to be valid: stop using the resource, and acquire it again"),
    REDLOCK_ERROR(
        errc, hold_limit_reached, lost,
        "the lease was held for max_hold: divide the work, or raise max_hold"),
    REDLOCK_ERROR(errc, not_held, misuse, "the lease is empty or was released: acquire the resource first"),
    REDLOCK_ERROR(
        errc, unconfirmed, unavailable_finally,
        "no quorum confirmed the release in time: no action is needed, the ttl frees the remaining keys"),
    REDLOCK_ERROR(
        errc, too_many_operations, retryable,
        "max_operations or max_waiting_acquires was reached: start fewer operations at once, or raise the "
        "limit"),
    REDLOCK_ERROR(errc, closed, {}, "the manager was shut down or destroyed: create a new one"),
    REDLOCK_ERROR(
        errc, invalid_resource, misuse,
        "the name of the resource can't be used: it must have 1 to 1024 bytes, and not be one of the "
        "library's own keys",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_ttl, misuse,
        "the ttl can't be used: it must be longer than node timeout and drift together, and at most 100 "
        "years or, in guarded mode, the max_ttl of the group",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_wait, misuse, "the wait can't be used: it must be 0 ms or more, or no_limit",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_min_validity, misuse,
        "the min_validity can't be used: it must be 0 ms or more, and less than the ttl minus the drift",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_max_rounds, misuse, "the max_rounds can't be used: it must be 1 or more, or empty",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_max_hold, misuse, "the max_hold can't be used: it must be 1 ms or more, or no_limit",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_schedule, misuse,
        "the lease can't be extended in time: use a longer ttl, a shorter extend_every or a smaller "
        "stop_margin",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_master, misuse,
        "a master can't be used: give each server once, as redis://[[user]:password@]host[:port][/db], "
        "rediss:// for TLS, or unix:///path[?db=n]",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, invalid_config, misuse,
        "an option of the manager can't be used: give a value in the allowed range",
        generic::invalid_argument),
    REDLOCK_ERROR(
        errc, provisioning_failed, retryable,
        "the masters weren't provisioned: see the report for what was found on each, and run it again"),
};

constexpr std::array master_errors{
    REDLOCK_ERROR(
        master_errc, not_connected, unavailable,
        "no connection to it was ready: check that it runs and can be reached", generic::not_connected),
    REDLOCK_ERROR(
        master_errc, timed_out, unavailable,
        "no answer within the node timeout: check its load and the network, or raise node_timeout",
        generic::timed_out),
    REDLOCK_ERROR(
        master_errc, unresponsive, unavailable,
        "a command went unanswered for response_timeout, so it was disconnected: check that it isn't hung",
        generic::timed_out),
    REDLOCK_ERROR(
        master_errc, connect_timed_out, unavailable,
        "connecting took longer than connect_timeout: check address, network and firewall",
        generic::timed_out),
    REDLOCK_ERROR(
        master_errc, connection_lost, unavailable, "it closed the connection: check its log",
        generic::connection_reset),
    REDLOCK_ERROR(
        master_errc, write_queue_full, unavailable,
        "its write queue has reached max_write_queue_bytes: check why it reads so slowly",
        generic::resource_unavailable_try_again),
    REDLOCK_ERROR(
        master_errc, too_many_outstanding_keys, unavailable,
        "its outstanding keys have reached max_outstanding_keys: check why it doesn't answer releases",
        generic::resource_unavailable_try_again),
    REDLOCK_ERROR(
        master_errc, tls_failed, unavailable,
        "the TLS connection couldn't be established or failed: check that the port speaks TLS, and whether "
        "a client certificate is required"),
    REDLOCK_ERROR(
        master_errc, certificate_untrusted, misuse,
        "no trusted authority has signed its certificate: check tls.ca_file, and the server's certificate"),
    REDLOCK_ERROR(
        master_errc, certificate_expired, misuse,
        "its certificate has expired or isn't valid yet: renew it, or check this machine's clock"),
    REDLOCK_ERROR(
        master_errc, certificate_wrong_name, misuse,
        "its certificate is for another host: use a name that is in it, or renew it"),
    REDLOCK_ERROR(
        master_errc, protocol_error, misuse,
        "its reply isn't that of a Redis or Valkey server: check address and port", generic::protocol_error),
    REDLOCK_ERROR(
        master_errc, authentication_failed, misuse,
        "it refused the user or password, or requires one: check them in the master's address",
        generic::permission_denied),
    REDLOCK_ERROR(
        master_errc, no_permission, misuse,
        "its ACL forbids a command or a key that locking needs: allow it for the user",
        generic::permission_denied),
    REDLOCK_ERROR(
        master_errc, loading, unavailable, "it is loading its data: wait until it has finished",
        generic::resource_unavailable_try_again),
    REDLOCK_ERROR(
        master_errc, busy, unavailable, "it is running a slow script: wait, or end it with SCRIPT KILL",
        generic::resource_unavailable_try_again),
    REDLOCK_ERROR(
        master_errc, read_only, unavailable,
        "it is a replica, or lost its master: give the address of a master"),
    REDLOCK_ERROR(
        master_errc, no_replicas, unavailable,
        "it refuses writes because too few replicas follow it: check min-replicas-to-write and the replicas"),
    REDLOCK_ERROR(
        master_errc, misconfigured, unavailable,
        "it refuses writes because it can't save its data: check its disk and its log"),
    REDLOCK_ERROR(
        master_errc, out_of_memory, unavailable,
        "it refuses writes because its memory is full: raise maxmemory, or free some"),
    REDLOCK_ERROR(
        master_errc, too_many_clients, unavailable,
        "it has reached its limit of clients: raise maxclients, or close some"),
    REDLOCK_ERROR(
        master_errc, cluster_node, misuse,
        "it is a node of a Redis Cluster: give masters that are independent of each other"),
    REDLOCK_ERROR(
        master_errc, same_server, misuse,
        "it is the same server as another master of this manager: give each server once"),
    REDLOCK_ERROR(
        master_errc, not_provisioned, unavailable,
        "it belongs to no group of guarded mode, or has lost its data: check its address; new masters are "
        "provisioned, and a group that was used needs redlock provision --again"),
    REDLOCK_ERROR(
        master_errc, quarantined, unavailable,
        "it may have forgotten keys, and doesn't vote yet: a client that is connected for max_ttl arms it, "
        "unless an operator has to"),
    REDLOCK_ERROR(
        master_errc, incarnation_changed, unavailable,
        "it was restarted, emptied or promoted: a client puts it into quarantine, and arms it afterwards"),
    REDLOCK_ERROR(
        master_errc, clock_ahead, unavailable,
        "its clock is ahead of what it can be: check the clock of its machine, and the network"),
    REDLOCK_ERROR(
        master_errc, other_group, misuse,
        "it belongs to another group of guarded mode, or has left its group: check its address, or the "
        "group"),
    REDLOCK_ERROR(
        master_errc, not_a_member, misuse,
        "its name isn't on the record of the group, or too few masters show the record: use the addresses "
        "with which the group was provisioned"),
    REDLOCK_ERROR(
        master_errc, command_failed, unavailable,
        "it replied with an error that this library doesn't know: see its message in the detail"),
    REDLOCK_ERROR(
        master_errc, no_database, misuse,
        "it has no database with this number: give another one, or raise databases in its configuration"),
};
#undef REDLOCK_ERROR

/// True if the rows are those of the enumerators from 1 to `last`, in their order.
template <class Rows, class Value>
constexpr bool is_complete(const Rows& rows, Value last)
{
    for (std::size_t i = 0; i < rows.size(); ++i)
    {
        if (static_cast<std::size_t>(rows[i].value) != i + 1)
        {
            return false;
        }
    }
    return rows.back().value == last;
}

static_assert(is_complete(errors, errc::provisioning_failed));
static_assert(is_complete(master_errors, master_errc::no_database));

template <class Rows, class Value>
const error_entry* find(const Rows& rows, Value value) noexcept
{
    const auto index = static_cast<std::size_t>(value) - 1; // 0 becomes a large value.
    return index < rows.size() ? &rows[index].entry : nullptr;
}

} // namespace

const error_entry* find_error(errc value) noexcept
{
    return find(errors, value);
}

const error_entry* find_error(master_errc value) noexcept
{
    return find(master_errors, value);
}

} // namespace redlock
