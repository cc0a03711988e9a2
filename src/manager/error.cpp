// SPDX-License-Identifier: BSL-1.0
// The two error categories: for each value a sentence that says what happened, and after the colon what to
// do.
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
           " isn't known: check that headers and library are of the same version";
}

const char* text_of(errc value) noexcept
{
    switch (value)
    {
    case errc::held_by_other:
        return "too many masters hold the resource for another owner: try again later, or wait longer";
    case errc::no_quorum:
        return "fewer than a quorum of the masters answered: see in the report why, and try again when they "
               "are back";
    case errc::validity_exhausted:
        return "a quorum granted, but too little of the ttl was left: take a longer ttl, or a smaller "
               "min_validity";
    case errc::lease_lost:
        return "the lease can't be shown to be valid any more: stop using the resource, and acquire it anew";
    case errc::hold_limit_reached:
        return "the lease was kept for as long as max_hold allows: do the work in smaller parts, or raise "
               "max_hold";
    case errc::not_held:
        return "the lease is empty, or was released before: acquire the resource first";
    case errc::unconfirmed:
        return "no quorum confirmed the release in time: nothing has to be done, at the latest the ttl frees "
               "the rest";
    case errc::too_many_operations:
        return "as many operations run or wait as max_operations and max_waiting_acquires allow: start fewer "
               "at once, or "
               "raise them";
    case errc::closed:
        return "the manager is shut down or has gone: make a new one";
    case errc::invalid_resource:
        return "the name of the resource can't be used: give 1 to 1024 bytes";
    case errc::invalid_ttl:
        return "the ttl can't be used: give one that leaves a validity after node timeout and drift";
    case errc::invalid_wait:
        return "the wait can't be used: give 0 ms or more, or no_limit";
    case errc::invalid_min_validity:
        return "the min_validity can't be used: give 0 ms or more, and less than the ttl leaves";
    case errc::invalid_max_rounds:
        return "the number of rounds can't be used: give 1 or more, or leave it empty";
    case errc::invalid_max_hold:
        return "the max_hold can't be used: give 1 ms or more, or no_limit";
    case errc::invalid_schedule:
        return "the lease can't be kept so: give a longer ttl, a shorter extend_every or a smaller "
               "stop_margin";
    case errc::invalid_master:
        return "a master can't be used: give redis://[user[:password]@]host[:port][/db], rediss:// for the "
               "same "
               "over TLS, or unix:///path[?db=n]";
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
        return "a command went unanswered for dead_after, so it was disconnected: check that it isn't hung";
    case master_errc::connect_timed_out:
        return "no connection and handshake within connect_timeout: check address, network and firewall";
    case master_errc::connection_lost:
        return "it closed the connection: check its log";
    case master_errc::too_many_waiting:
        return "as many bytes wait to be written to it as max_waiting_bytes allows: check why it reads so "
               "slowly";
    case master_errc::too_many_owed:
        return "it owes as many answers to releases as max_owed allows: check why it doesn't answer";
    case master_errc::tls_failed:
        return "no TLS with it came about, or it broke: check that it speaks TLS on that port, and whether "
               "it wants "
               "a client certificate";
    case master_errc::certificate_untrusted:
        return "no trusted authority has signed its certificate: check tls.ca_file, and the server's "
               "certificate";
    case master_errc::certificate_expired:
        return "its certificate is expired, or not valid yet: renew it, or check this machine's clock";
    case master_errc::certificate_wrong_name:
        return "its certificate is made out to another host: give the name that stands in it, or renew it";
    case master_errc::protocol_error:
        return "what it sent is no answer of a Redis or Valkey server: check address and port";
    case master_errc::authentication_failed:
        return "it refused the user or password, or wants one: check them in the master's address";
    case master_errc::no_permission:
        return "its ACL forbids a command that locking needs: allow it to the user";
    case master_errc::loading:
        return "it is loading its data: wait until it has done so";
    case master_errc::busy:
        return "it is running a slow script: wait for it, or end it with SCRIPT KILL";
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
        return "it has as many clients as it allows: raise maxclients, or close some";
    case master_errc::cluster_node:
        return "it is a node of a Redis Cluster: give masters that are independent of each other";
    case master_errc::same_server:
        return "it is the same server as another master of this manager: give each server once";
    case master_errc::command_failed:
        return "it answered with an error that has no code of its own: see what it said in the detail";
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
        // What a lock can end with has no counterpart elsewhere; a near one would be taken for the real one.
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
    case master_errc::too_many_owed:
    case master_errc::too_many_waiting:
    case master_errc::loading:
    case master_errc::busy:
        return make_error_condition(generic::resource_unavailable_try_again);
    default:
        return {static_cast<int>(value), category};
    }
}

/// `Value` is the enumeration whose category it is.
template <class Value>
class category final : public boost::system::error_category
{
  public:
    /// The id makes two copies of the library in one process agree on what is the same error.
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
