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

/// Says in so many words that something has no limit: `.wait = redlock::no_limit`.
struct no_limit_t
{
};
inline constexpr no_limit_t no_limit{};

/// A limit in time, or `no_limit`. Whole milliseconds.
class time_limit
{
  public:
    template <class Rep, class Period>
        requires std::is_convertible_v<std::chrono::duration<Rep, Period>, std::chrono::milliseconds>
    constexpr time_limit(std::chrono::duration<Rep, Period> value) noexcept : value_{saturated(value)}
    {
    }
    constexpr time_limit(no_limit_t) noexcept : value_{std::chrono::milliseconds::max()} {}

    constexpr bool unlimited() const noexcept { return value_ == std::chrono::milliseconds::max(); }
    constexpr std::chrono::milliseconds value() const noexcept { return value_; }

  private:
    /// What is longer than milliseconds can say is the longest or shortest of them.
    template <class Rep, class Period>
    static constexpr std::chrono::milliseconds saturated(std::chrono::duration<Rep, Period> value) noexcept
    {
        using std::chrono::milliseconds;
        using coarse = std::chrono::duration<double, std::milli>;
        if (coarse{value} >= coarse{milliseconds::max()})
        {
            return milliseconds::max();
        }
        return coarse{value} <= coarse{milliseconds::min()} ? milliseconds::min() : milliseconds{value};
    }

    std::chrono::milliseconds value_;
};

/// The name of a resource: 1 to 1024 bytes of any kind. Made from anything that is text.
class resource_name
{
  public:
    resource_name(std::string name) noexcept : value_{std::move(name)} {}
    resource_name(std::nullptr_t) = delete;
    template <class Text>
        requires std::convertible_to<const Text&, std::string_view> && (!std::same_as<Text, std::string>)
    resource_name(const Text& name) : value_{std::string_view{name}}
    {
    }
    /// From what is a string only, as a `std::filesystem::path` is.
    template <class Text>
        requires(!std::convertible_to<const Text&, std::string_view>) &&
                std::convertible_to<const Text&, std::string> && (!std::same_as<Text, resource_name>)
    resource_name(const Text& name) : value_(static_cast<std::string>(name))
    {
    }

    const std::string& value() const& noexcept { return value_; }
    std::string value() && noexcept { return std::move(value_); }

  private:
    std::string value_;
};

/// How a resource is acquired: rounds until it holds, or until a limit is reached.
struct acquire_options
{
    /// Lifetime of the key, as sent in `PX`. Required. It must leave a validity after drift and node timeout.
    std::chrono::milliseconds ttl{};
    /// The bound of the operation. 0 or more. No round begins after it, and the operation ends one node timeout after it at
    /// the latest, which is the time that the masters have to answer the last round. Connecting and the wait queue are part
    /// of it: a manager that was just made is connected to no master, so that 0 ms ends with `errc::no_quorum`. For a
    /// single round that waits for the connections, use `async_try_acquire`.
    time_limit wait = std::chrono::seconds{10};
    /// A round that leaves no more validity than this is given back. 0 or more.
    std::chrono::milliseconds min_validity{0};
    /// The most rounds that are tried; empty for no limit but `wait`. 1 or more.
    std::optional<std::uint32_t> max_rounds{};
};

/// How a resource is tried once: one round. The first one of a manager waits until a quorum of masters is connected, or none is
/// possible because too many have refused or failed their first attempt, or `config::connect_timeout` is over.
struct try_options
{
    /// As in `acquire_options`.
    std::chrono::milliseconds ttl{};
    /// As in `acquire_options`.
    std::chrono::milliseconds min_validity{0};
};

/// How a resource is acquired and then kept: extended in the background until it is released.
/// Required: 1.1 × extend_every + 2 × node timeout + stop_margin + drift < ttl.
struct keep_options
{
    /// As in `acquire_options`; each extension asks for it anew.
    std::chrono::milliseconds ttl{};
    /// For how long the resource is held at most, however well the extensions go: work that hangs must not
    /// hold it for ever. More than 0, or `no_limit`. It has no default: the caller knows.
    time_limit max_hold;
    /// As in `acquire_options`.
    time_limit wait = std::chrono::seconds{10};
    /// As in `acquire_options`.
    std::chrono::milliseconds min_validity{0};
    /// As in `acquire_options`.
    std::optional<std::uint32_t> max_rounds{};
    /// The mean time between two extensions, each of which is off by up to 10 % at random. Empty for ttl / 3.
    std::optional<std::chrono::milliseconds> extend_every{};
    /// How long before the validity ends the loss is declared, so that the work has time to stop. Empty for
    /// the larger of ttl / 10 and twice the drift.
    std::optional<std::chrono::milliseconds> stop_margin{};
};

// g++ 12.2 destroys an aggregate twice that stands inside a co_await expression and has a destructor to run.
static_assert(std::is_trivially_destructible_v<acquire_options>);
static_assert(std::is_trivially_destructible_v<try_options>);
static_assert(std::is_trivially_destructible_v<keep_options>);

} // namespace redlock
