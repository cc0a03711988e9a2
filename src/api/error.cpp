// SPDX-License-Identifier: BSL-1.0
// The error categories, and the names of the errors. What is known of each error is in error_table.cpp.
#include "api/error_table.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/error_category.hpp>
#include <boost/system/error_condition.hpp>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace redlock
{

namespace
{

namespace asio = boost::asio;
namespace generic = boost::system::errc;

using boost::system::error_condition;

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
        if (const error_entry* entry = find_error(static_cast<Value>(value)))
        {
            return entry->message;
        }
        return fmt::format(
            "error {} of {} isn't known: check that headers and library have the same version", value, name_);
    }

    /// Most errors have no generic counterpart, and an approximate one would be misleading.
    error_condition default_error_condition(int value) const noexcept override
    {
        const error_entry* entry = find_error(static_cast<Value>(value));
        if (entry == nullptr || entry->generic == generic::success)
        {
            return {value, *this};
        }
        return make_error_condition(entry->generic);
    }

  private:
    const char* name_;
};

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

/// Returns the entry of an error of this library, or null for any other error.
const error_entry* find_error(const error_code& error) noexcept
{
    if (error.category() == redlock::error_category())
    {
        return find_error(static_cast<errc>(error.value()));
    }
    return error.category() == master_category() ? find_error(static_cast<master_errc>(error.value()))
                                                 : nullptr;
}

condition_set conditions_of(const error_code& error) noexcept
{
    if (const error_entry* entry = find_error(error))
    {
        return entry->conditions;
    }
    return is_of_connection(error) ? condition_set{.unavailable = true, .retryable = true} : condition_set{};
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
        const condition_set met = conditions_of(error);
        switch (static_cast<condition>(value))
        {
        case condition::contended:
            return met.contended;
        case condition::unavailable:
            return met.unavailable;
        case condition::lost:
            return met.lost;
        case condition::misuse:
            return met.misuse;
        case condition::retryable:
            return met.retryable;
        }
        return false;
    }
};

/// Returns the name of the entry.
std::string_view name_of(const error_entry* entry) noexcept
{
    return entry != nullptr ? entry->name : "unknown";
}

} // namespace

std::string_view to_string(errc value) noexcept
{
    return name_of(find_error(value));
}

std::string_view to_string(master_errc value) noexcept
{
    return name_of(find_error(value));
}

std::string_view to_string(condition value) noexcept
{
    switch (value)
    {
    case condition::contended:
        return "contended";
    case condition::unavailable:
        return "unavailable";
    case condition::lost:
        return "lost";
    case condition::misuse:
        return "misuse";
    case condition::retryable:
        return "retryable";
    }
    return "unknown";
}

std::string_view error_name(const error_code& error) noexcept
{
    if (error.category() == redlock::error_category() || error.category() == master_category())
    {
        return name_of(find_error(error));
    }
    if (!error)
    {
        return "success";
    }
    return error == asio::error::operation_aborted ? "operation_aborted" : "other";
}

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

const boost::system::error_category& condition_category() noexcept
{
    static const conditions instance;
    return instance;
}

} // namespace redlock
