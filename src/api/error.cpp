// SPDX-License-Identifier: BSL-1.0
// The two error categories. Each message says what happened and, after a colon, what to do.
#include <redlock/error.hpp>

#include <boost/system/errc.hpp>
#include <boost/system/error_category.hpp>
#include <boost/system/error_condition.hpp>

#include <string>

namespace redlock
{

namespace
{

using boost::system::error_condition;
namespace generic = boost::system::errc;

std::string unknown(const char* category, int value)
{
    return "error " + std::to_string(value) + " of " + category +
           " isn't known: check that headers and library have the same version";
}

const char* text_of(errc value) noexcept
{
    switch (value)
    {
    case errc::held_by_other:
        return "other clients hold the resource on too many masters: try again later, or raise wait";
    case errc::no_quorum:
        return "fewer than a quorum of the masters answered: see the report for the reason of each master";
    case errc::validity_exhausted:
        return "a quorum granted, but too little of the ttl was left: raise the ttl, or lower min_validity";
    case errc::lease_lost:
        return "the lease is no longer known to be valid: stop using the resource, and acquire it again";
    case errc::hold_limit_reached:
        return "the lease was held for max_hold: divide the work, or raise max_hold";
    case errc::not_held:
        return "the lease is empty or was released: acquire the resource first";
    case errc::unconfirmed:
        return "no quorum confirmed the release in time: no action is needed, the ttl frees the remaining "
               "keys";
    case errc::too_many_operations:
        return "max_operations or max_waiting_acquires was reached: start fewer operations at once, or raise "
               "the limit";
    case errc::closed:
        return "the manager was shut down or destroyed: create a new one";
    case errc::invalid_resource:
        return "the name of the resource can't be used: it must have 1 to 1024 bytes";
    case errc::invalid_ttl:
        return "the ttl can't be used: it must be longer than node timeout and drift together, and at most "
               "100 years";
    case errc::invalid_wait:
        return "the wait can't be used: it must be 0 ms or more, or no_limit";
    case errc::invalid_min_validity:
        return "the min_validity can't be used: it must be 0 ms or more, and less than the ttl minus the "
               "drift";
    case errc::invalid_max_rounds:
        return "the max_rounds can't be used: it must be 1 or more, or empty";
    case errc::invalid_max_hold:
        return "the max_hold can't be used: it must be 1 ms or more, or no_limit";
    case errc::invalid_schedule:
        return "the lease can't be extended in time: use a longer ttl, a shorter extend_every or a smaller "
               "stop_margin";
    case errc::invalid_master:
        return "a master can't be used: give each server once, as "
               "redis://[user[:password]@]host[:port][/db], "
               "rediss:// for TLS, or unix:///path[?db=n]";
    case errc::invalid_config:
        return "an option of the manager can't be used: give a value in the allowed range";
    }
    return nullptr;
}

const char* text_of(master_errc value) noexcept
{
    switch (value)
    {
    case master_errc::not_connected:
        return "no connection to it was ready: check that it runs and can be reached";
    case master_errc::timed_out:
        return "no answer within the node timeout: check its load and the network, or raise node_timeout";
    case master_errc::unresponsive:
        return "a command went unanswered for response_timeout, so it was disconnected: check that it isn't "
               "hung";
    case master_errc::connect_timed_out:
        return "connecting took longer than connect_timeout: check address, network and firewall";
    case master_errc::connection_lost:
        return "it closed the connection: check its log";
    case master_errc::write_queue_full:
        return "its write queue has reached max_write_queue_bytes: check why it reads so slowly";
    case master_errc::too_many_outstanding_keys:
        return "its outstanding keys have reached max_outstanding_keys: check why it doesn't answer releases";
    case master_errc::tls_failed:
        return "the TLS connection couldn't be established or failed: check that the port speaks TLS, and "
               "whether a client certificate is required";
    case master_errc::certificate_untrusted:
        return "no trusted authority has signed its certificate: check tls.ca_file, and the server's "
               "certificate";
    case master_errc::certificate_expired:
        return "its certificate has expired or isn't valid yet: renew it, or check this machine's clock";
    case master_errc::certificate_wrong_name:
        return "its certificate is for another host: use a name that is in it, or renew it";
    case master_errc::protocol_error:
        return "its reply isn't that of a Redis or Valkey server: check address and port";
    case master_errc::authentication_failed:
        return "it refused the user or password, or requires one: check them in the master's address";
    case master_errc::no_permission:
        return "its ACL forbids a command that locking needs: allow it for the user";
    case master_errc::loading:
        return "it is loading its data: wait until it has finished";
    case master_errc::busy:
        return "it is running a slow script: wait, or end it with SCRIPT KILL";
    case master_errc::read_only:
        return "it is a replica, or lost its master: give the address of a master";
    case master_errc::no_replicas:
        return "it refuses writes because too few replicas follow it: check min-replicas-to-write and the "
               "replicas";
    case master_errc::misconfigured:
        return "it refuses writes because it can't save its data: check its disk and its log";
    case master_errc::out_of_memory:
        return "it refuses writes because its memory is full: raise maxmemory, or free some";
    case master_errc::too_many_clients:
        return "it has reached its limit of clients: raise maxclients, or close some";
    case master_errc::cluster_node:
        return "it is a node of a Redis Cluster: give masters that are independent of each other";
    case master_errc::same_server:
        return "it is the same server as another master of this manager: give each server once";
    case master_errc::command_failed:
        return "it replied with an error that has no code here: see its message in the detail";
    }
    return nullptr;
}

error_condition condition_of(errc value, const boost::system::error_category& category) noexcept
{
    switch (value)
    {
    case errc::invalid_resource:
    case errc::invalid_ttl:
    case errc::invalid_wait:
    case errc::invalid_min_validity:
    case errc::invalid_max_rounds:
    case errc::invalid_max_hold:
    case errc::invalid_schedule:
    case errc::invalid_master:
    case errc::invalid_config:
        return make_error_condition(generic::invalid_argument);
    default:
        // The other results have no generic counterpart, and an approximate one would be misleading.
        return {static_cast<int>(value), category};
    }
}

error_condition condition_of(master_errc value, const boost::system::error_category& category) noexcept
{
    switch (value)
    {
    case master_errc::not_connected:
        return make_error_condition(generic::not_connected);
    case master_errc::timed_out:
    case master_errc::unresponsive:
    case master_errc::connect_timed_out:
        return make_error_condition(generic::timed_out);
    case master_errc::connection_lost:
        return make_error_condition(generic::connection_reset);
    case master_errc::protocol_error:
        return make_error_condition(generic::protocol_error);
    case master_errc::authentication_failed:
    case master_errc::no_permission:
        return make_error_condition(generic::permission_denied);
    case master_errc::too_many_outstanding_keys:
    case master_errc::write_queue_full:
    case master_errc::loading:
    case master_errc::busy:
        return make_error_condition(generic::resource_unavailable_try_again);
    default:
        return {static_cast<int>(value), category};
    }
}

/// The category of the enumeration `Value`.
template <class Value>
class category final : public boost::system::error_category
{
  public:
    /// The id makes the errors of two copies of the library in one process compare equal.
    constexpr category(const char* name, unsigned long long id) noexcept : error_category{id}, name_{name} {}

    using boost::system::error_category::message;

    const char* name() const noexcept override { return name_; }

    std::string message(int value) const override
    {
        const char* text = text_of(static_cast<Value>(value));
        return text != nullptr ? std::string{text} : unknown(name_, value);
    }

    error_condition default_error_condition(int value) const noexcept override
    {
        return condition_of(static_cast<Value>(value), *this);
    }

  private:
    const char* name_;
};

} // namespace

const boost::system::error_category& error_category() noexcept
{
    static const category<errc> instance{"redlock", 0x7265646c6f636b01};
    return instance;
}

const boost::system::error_category& master_category() noexcept
{
    static const category<master_errc> instance{"redlock.master", 0x7265646c6f636b02};
    return instance;
}

} // namespace redlock
