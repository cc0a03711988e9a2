// SPDX-License-Identifier: BSL-1.0
// The options of single operations: aggregates for designated initialisers.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace redlock
{

/// The absence of a limit, as in `.wait = redlock::no_limit`.
struct no_limit_t
{
};
inline constexpr no_limit_t no_limit{};

/// A time limit in whole milliseconds, or `no_limit`.
class time_limit
{
  public:
    template <class Rep, class Period>
        requires std::is_convertible_v<std::chrono::duration<Rep, Period>, std::chrono::milliseconds>
    constexpr time_limit(std::chrono::duration<Rep, Period> value) noexcept : value_{saturated(value)}
    {
    }
    constexpr time_limit(no_limit_t) noexcept : value_{(std::chrono::milliseconds::max)()} {}

    constexpr bool unlimited() const noexcept { return value_ == (std::chrono::milliseconds::max)(); }
    constexpr std::chrono::milliseconds value() const noexcept { return value_; }

  private:
    /// Converts to milliseconds, and saturates at their minimum and maximum.
    template <class Rep, class Period>
    static constexpr std::chrono::milliseconds saturated(std::chrono::duration<Rep, Period> value) noexcept
    {
        using std::chrono::milliseconds;
        using coarse = std::chrono::duration<double, std::milli>;
        if (coarse{value} >= coarse{(milliseconds::max)()})
        {
            return (milliseconds::max)();
        }
        return coarse{value} <= coarse{(milliseconds::min)()} ? (milliseconds::min)() : milliseconds{value};
    }

    std::chrono::milliseconds value_;
};

/// The name of a resource: 1 to 1024 bytes, arbitrary but for the names of the library's own keys. Implicitly convertible from
/// string types.
class resource_name
{
  public:
    resource_name(std::string name) noexcept : value_{std::move(name)} {}
    resource_name(std::nullptr_t) = delete;
    template <class Text>
        requires std::convertible_to<const Text&, std::string_view> && (!std::same_as<Text, std::string>)
    resource_name(const Text& name) : value_{view_of(name)}
    {
    }
    /// Accepts types that are convertible to `std::string` only, such as `std::filesystem::path`.
    template <class Text>
        requires(!std::convertible_to<const Text&, std::string_view>) &&
                std::convertible_to<const Text&, std::string> && (!std::same_as<Text, resource_name>)
    resource_name(const Text& name) : value_(static_cast<std::string>(name))
    {
    }

    const std::string& value() const& noexcept { return value_; }
    std::string value() && noexcept { return std::move(value_); }

  private:
    /// A null pointer becomes an empty name, which is refused.
    template <class Text>
    static std::string_view view_of(const Text& name)
    {
        if constexpr (std::is_pointer_v<Text>)
        {
            return name != nullptr ? std::string_view{name} : std::string_view{};
        }
        else
        {
            return name;
        }
    }

    std::string value_;
};

/// The options of `lock_manager::async_acquire`.
struct acquire_options
{
    /// The lifetime of the key, sent as `PX`. Required. Must be longer than the sum of drift and node timeout, and at
    /// most 100 years.
    std::chrono::milliseconds ttl{};
    /// The time limit of the operation, 0 or more. No round begins later, and the operation completes at most one
    /// node timeout later, which is the time that the masters have to answer the last round; in guarded mode at most
    /// two, since a token may have to be raised. The limit includes connecting and queueing: with 0 ms, a new manager
    /// fails with `errc::no_quorum`. To wait for the connections and then try once, use `async_try_acquire`.
    time_limit wait = std::chrono::seconds{10};
    /// The minimum validity, 0 or more and less than ttl − drift. A lease with this or less remaining is released, and
    /// the round counts as lost.
    std::chrono::milliseconds min_validity{0};
    /// The maximum number of rounds, 1 or more. Empty: limited by `wait` only. A client in the queue begins rounds only
    /// when it is first, and saves the last one for a message from the queue.
    std::optional<std::uint32_t> max_rounds{};
};

/// The options of `lock_manager::async_try_acquire`.
struct try_options
{
    /// See `acquire_options::ttl`.
    std::chrono::milliseconds ttl{};
    /// See `acquire_options::min_validity`.
    std::chrono::milliseconds min_validity{0};
};

/// The options of `lock_manager::async_acquire_kept` and `lock_manager::async_with_lock`.
///
/// The schedule must satisfy 1.1 × `extend_every` + 2 × node timeout + `stop_margin` + drift < `ttl`, so that an
/// extension can be repeated once before the lease is lost.
struct keep_options
{
    /// See `acquire_options::ttl`. Each extension renews it.
    std::chrono::milliseconds ttl{};
    /// The maximum time to hold the lease even if all extensions succeed, so that work that hangs doesn't hold it
    /// forever. Must be positive, or `no_limit`. Required, because the right value depends on the work.
    time_limit max_hold;
    /// See `acquire_options::wait`.
    time_limit wait = std::chrono::seconds{10};
    /// See `acquire_options::min_validity`. A lease with no more than `stop_margin` remaining is released in any case.
    std::chrono::milliseconds min_validity{0};
    /// See `acquire_options::max_rounds`.
    std::optional<std::uint32_t> max_rounds{};
    /// The mean interval between extensions, 1 ms or more; each one varies by up to 10 % at random. Empty: ttl / 3.
    std::optional<std::chrono::milliseconds> extend_every{};
    /// The time between the declaration of a loss and the end of the validity, in which the work has to stop, 0 or more.
    /// Empty: max(ttl / 10, 2 × drift).
    std::optional<std::chrono::milliseconds> stop_margin{};
};

// g++ 12.2 destroys an aggregate twice if it is part of a co_await expression and has a destructor to run.
static_assert(std::is_trivially_destructible_v<acquire_options>);
static_assert(std::is_trivially_destructible_v<try_options>);
static_assert(std::is_trivially_destructible_v<keep_options>);

} // namespace redlock
