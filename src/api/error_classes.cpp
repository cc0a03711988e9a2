// SPDX-License-Identifier: BSL-1.0
// The names of the errors, and the conditions that they meet.
#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/errc.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace redlock
{

namespace
{

namespace asio = boost::asio;
namespace generic = boost::system::errc;

using boost::system::error_condition;

struct classes
{
    bool contended = false;
    bool unavailable = false;
    bool lost = false;
    bool misuse = false;
    bool retryable = false;
};

constexpr classes none{};
constexpr classes contended{.contended = true, .retryable = true};
constexpr classes unavailable{.unavailable = true, .retryable = true};
constexpr classes lost{.lost = true};
constexpr classes misuse{.misuse = true};

classes classes_of(errc value) noexcept
{
    switch (value)
    {
    case errc::held_by_other:
        return contended;
    case errc::no_quorum:
    case errc::validity_exhausted:
        return unavailable;
    case errc::lease_lost:
    case errc::hold_limit_reached:
        return lost;
    case errc::unconfirmed:
        return {
            .unavailable = true}; // Not retryable: the lease is released, and a second release is refused.
    case errc::too_many_operations:
        return {.retryable = true};
    case errc::closed:
        return none;
    case errc::not_held:
    case errc::invalid_resource:
    case errc::invalid_ttl:
    case errc::invalid_wait:
    case errc::invalid_min_validity:
    case errc::invalid_max_rounds:
    case errc::invalid_max_hold:
    case errc::invalid_schedule:
    case errc::invalid_master:
    case errc::invalid_config:
        return misuse;
    }
    return none;
}

classes classes_of(master_errc value) noexcept
{
    switch (value)
    {
    case master_errc::not_connected:
    case master_errc::timed_out:
    case master_errc::unresponsive:
    case master_errc::connect_timed_out:
    case master_errc::connection_lost:
    case master_errc::write_queue_full:
    case master_errc::too_many_outstanding_keys:
    case master_errc::tls_failed:
    case master_errc::loading:
    case master_errc::busy:
    case master_errc::read_only:
    case master_errc::no_replicas:
    case master_errc::misconfigured:
    case master_errc::out_of_memory:
    case master_errc::too_many_clients:
    case master_errc::command_failed:
        return unavailable;
    case master_errc::certificate_untrusted:
    case master_errc::certificate_expired:
    case master_errc::certificate_wrong_name:
    case master_errc::protocol_error:
    case master_errc::authentication_failed:
    case master_errc::no_permission:
    case master_errc::cluster_node:
    case master_errc::same_server:
        return misuse;
    }
    return none;
}

/// True for errors of the system, of name resolution and of a stream that mean that a master can't be reached.
bool is_of_connection(const error_code& error) noexcept
{
    const bool of_name = error == asio::error::host_not_found ||
                         error == asio::error::host_not_found_try_again || error == asio::error::no_data ||
                         error == asio::error::no_recovery;
    return of_name || error == asio::error::eof || error == generic::connection_refused ||
           error == generic::connection_reset || error == generic::connection_aborted ||
           error == generic::host_unreachable || error == generic::network_unreachable ||
           error == generic::network_down || error == generic::network_reset || error == generic::timed_out ||
           error == generic::broken_pipe || error == generic::not_connected ||
           error == generic::no_such_file_or_directory;
}

classes classes_of(const error_code& error) noexcept
{
    if (error.category() == redlock::error_category())
    {
        return classes_of(static_cast<errc>(error.value()));
    }
    if (error.category() == master_category())
    {
        return classes_of(static_cast<master_errc>(error.value()));
    }
    return is_of_connection(error) ? unavailable : none;
}

class conditions final : public boost::system::error_category
{
  public:
    constexpr conditions() noexcept : boost::system::error_category{0x7265646c6f636b03} {}

    using boost::system::error_category::message;

    const char* name() const noexcept override { return "redlock.condition"; }
    std::string message(int value) const override
    {
        return std::string{to_string(static_cast<condition>(value))};
    }

    using boost::system::error_category::equivalent;

    bool equivalent(const error_code& error, int value) const noexcept override
    {
        const classes in = classes_of(error);
        switch (static_cast<condition>(value))
        {
        case condition::contended:
            return in.contended;
        case condition::unavailable:
            return in.unavailable;
        case condition::lost:
            return in.lost;
        case condition::misuse:
            return in.misuse;
        case condition::retryable:
            return in.retryable;
        }
        return false;
    }
};

} // namespace

// The name is the enumerator's by construction, and a missing case is a compiler warning.
#define REDLOCK_NAME(Enumeration, Enumerator)                                                                \
    case Enumeration::Enumerator:                                                                            \
        return #Enumerator

std::string_view to_string(errc value) noexcept
{
    switch (value)
    {
        REDLOCK_NAME(errc, held_by_other);
        REDLOCK_NAME(errc, no_quorum);
        REDLOCK_NAME(errc, validity_exhausted);
        REDLOCK_NAME(errc, lease_lost);
        REDLOCK_NAME(errc, hold_limit_reached);
        REDLOCK_NAME(errc, not_held);
        REDLOCK_NAME(errc, unconfirmed);
        REDLOCK_NAME(errc, too_many_operations);
        REDLOCK_NAME(errc, closed);
        REDLOCK_NAME(errc, invalid_resource);
        REDLOCK_NAME(errc, invalid_ttl);
        REDLOCK_NAME(errc, invalid_wait);
        REDLOCK_NAME(errc, invalid_min_validity);
        REDLOCK_NAME(errc, invalid_max_rounds);
        REDLOCK_NAME(errc, invalid_max_hold);
        REDLOCK_NAME(errc, invalid_schedule);
        REDLOCK_NAME(errc, invalid_master);
        REDLOCK_NAME(errc, invalid_config);
    }
    return "unknown";
}

std::string_view to_string(master_errc value) noexcept
{
    switch (value)
    {
        REDLOCK_NAME(master_errc, not_connected);
        REDLOCK_NAME(master_errc, timed_out);
        REDLOCK_NAME(master_errc, unresponsive);
        REDLOCK_NAME(master_errc, connect_timed_out);
        REDLOCK_NAME(master_errc, connection_lost);
        REDLOCK_NAME(master_errc, write_queue_full);
        REDLOCK_NAME(master_errc, too_many_outstanding_keys);
        REDLOCK_NAME(master_errc, tls_failed);
        REDLOCK_NAME(master_errc, certificate_untrusted);
        REDLOCK_NAME(master_errc, certificate_expired);
        REDLOCK_NAME(master_errc, certificate_wrong_name);
        REDLOCK_NAME(master_errc, protocol_error);
        REDLOCK_NAME(master_errc, authentication_failed);
        REDLOCK_NAME(master_errc, no_permission);
        REDLOCK_NAME(master_errc, loading);
        REDLOCK_NAME(master_errc, busy);
        REDLOCK_NAME(master_errc, read_only);
        REDLOCK_NAME(master_errc, no_replicas);
        REDLOCK_NAME(master_errc, misconfigured);
        REDLOCK_NAME(master_errc, out_of_memory);
        REDLOCK_NAME(master_errc, too_many_clients);
        REDLOCK_NAME(master_errc, cluster_node);
        REDLOCK_NAME(master_errc, same_server);
        REDLOCK_NAME(master_errc, command_failed);
    }
    return "unknown";
}

std::string_view to_string(condition value) noexcept
{
    switch (value)
    {
        REDLOCK_NAME(condition, contended);
        REDLOCK_NAME(condition, unavailable);
        REDLOCK_NAME(condition, lost);
        REDLOCK_NAME(condition, misuse);
        REDLOCK_NAME(condition, retryable);
    }
    return "unknown";
}

#undef REDLOCK_NAME

std::string_view error_name(const error_code& error) noexcept
{
    if (error.category() == redlock::error_category())
    {
        return to_string(static_cast<errc>(error.value()));
    }
    if (error.category() == master_category())
    {
        return to_string(static_cast<master_errc>(error.value()));
    }
    if (!error)
    {
        return "success";
    }
    return error == asio::error::operation_aborted ? "operation_aborted" : "other";
}

const boost::system::error_category& condition_category() noexcept
{
    static const conditions instance;
    return instance;
}

struct lock_error::contents
{
    std::string resource;
    std::string text;
};

lock_error::lock_error(const error_code& error, std::string resource, std::string_view text)
    : system_error{error}
{
    std::string all = text.empty() ? error.message() : std::string{text};
    if (!resource.empty())
    {
        all = fmt::format("{}: {}", short_text{resource}.view(), all);
    }
    contents_ = std::make_shared<const contents>(std::move(resource), std::move(all));
}

lock_error::~lock_error() = default;

const std::string& lock_error::resource() const noexcept
{
    return contents_->resource;
}

const char* lock_error::what() const noexcept
{
    return contents_->text.c_str();
}

} // namespace redlock
