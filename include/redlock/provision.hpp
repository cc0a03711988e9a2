// SPDX-License-Identifier: BSL-1.0
// Provisioning: makes masters a guarded group, and arms them by hand.
#pragma once

#include <redlock/arming_policy.hpp>
#include <redlock/config.hpp>
#include <redlock/detail/completion.hpp>
#include <redlock/detail/export.hpp>
#include <redlock/detail/lock_body.hpp>
#include <redlock/error.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/provision_action.hpp>
#include <redlock/provision_finding.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock
{

/// The options of `async_provision`.
struct provision_options
{
    provision_action action = provision_action::make_group;
    /// The longest ttl of a guarded lock, 1 ms to 100 years. It is fixed for the life of the group. As short as the longest
    /// lock allows: after a loss of data, a master doesn't vote for as long. `arm` and `arm_again` take it from the masters;
    /// `arm_again` needs it if no master has kept its data.
    std::chrono::milliseconds max_ttl{};
    /// How the group continues after all of its masters were restarted. `arm_again` uses it only if no master has kept its data.
    arming_policy policy = arming_policy::clocks;
    /// How many of the last entries of `config::masters` aren't members of the group that is made, but of one that it replaces:
    /// they leave. Only with `change_group` or `takeover`.
    std::size_t leaving = 0;
    /// How many of the last of those are stopped and never come back, so that the change is finished without them.
    std::size_t stopped = 0;
    /// Replaces the group of another run, too, that hasn't finished and never will. Only with `make_group` and `change_group`.
    bool takeover = false;
    /// Skips the wait. Allowed only with `make_group`, if all databases of all masters are empty and no client uses them
    /// meanwhile.
    bool fresh = false;
};

// See options.hpp: it may be part of a co_await expression.
static_assert(std::is_trivially_destructible_v<provision_options>);

/// What a run of provisioning has achieved.
enum class provision_outcome : std::uint8_t
{
    unchanged,  ///< No master was changed by this run.
    unfinished, ///< Some masters may be in quarantine, or armed. Another run with the same options continues.
    provisioned, ///< All masters were armed, or a quorum at least with `arm` and `arm_again`.
    incomplete, ///< The new group grants locks, but a master of it isn't armed, or one of the old group isn't moved. Another run
                ///< with the same options continues.
    complete, ///< Nothing was left to do: all masters were armed already, or had no marker. None was changed.
    retired   ///< The markers of all masters were deleted.
};

/// Returns the name of the enumerator, such as "unfinished". Names never change. Thread-safe.
REDLOCK_API std::string_view to_string(provision_outcome value) noexcept;

/// One master in the report of a run. A plain value.
struct provisioned_master
{
    /// The address, without credentials. It is the master's name in the group.
    std::string name;
    /// What was found at the last look, or what the run has made of it, such as `armed`.
    provision_finding found = provision_finding::unknown;
    /// The reason why it gave no answer, or refused a command; empty otherwise.
    error_code reason;
    /// Further details of the finding or the reason, such as the server's message, escaped. Never contains a password.
    std::string detail;
};

/// The report of a run of provisioning. A plain value.
///
/// Thread safety: not thread-safe. It must not be accessed until the operation has completed.
struct provision_report
{
    /// The result of the operation; empty for success.
    error_code result;
    provision_outcome outcome = provision_outcome::unchanged;
    /// The name of the group, 16 hexadecimal digits; empty if there is none.
    std::string group;
    /// The largest counter of any master, which is the least fencing token of the group; 0 if it wasn't read. With `arm` and
    /// `arm_again`, at least what the masters' clocks show in microseconds, plus two hours.
    std::uint64_t floor = 0;
    /// The masters in the order of `config::masters`. Empty if an argument was refused.
    std::vector<provisioned_master> masters;
    /// The next step of an operator, in terms of `redlock provision`; empty if there is none, or if the findings are enough.
    std::string advice;
    /// The invalid argument, with its value and the allowed range; often empty.
    std::string argument_error;

    /// Returns the report as text: the result, followed by one line per master and the advice.
    REDLOCK_API std::string to_string() const;
};

/// Writes `value.to_string()`.
REDLOCK_API std::ostream& operator<<(std::ostream& out, const provision_report& value);

/// Returns how long a run waits after the last master went into quarantine: `max_ttl` and the drift of the clocks, which
/// is 1 % or `config::drift_factor`, and 2 ms. Thread-safe.
REDLOCK_API clock::duration
provisioning_wait(std::chrono::milliseconds max_ttl, double drift_factor) noexcept;

namespace detail
{

REDLOCK_API void start_provision(
    const executor_source& on, std::shared_ptr<const config> masters, provision_options options,
    provision_report* out, status_completion done);

/// The initiation of `async_provision`.
struct provision_initiation
{
    using executor_type = asio::any_io_executor;

    asio::any_io_executor executor;

    executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(
        Handler&& handler, std::shared_ptr<const config> masters, provision_options options,
        provision_report* out)
    {
        auto done = type_erase<void(error_code)>(std::forward<Handler>(handler), executor);
        start_provision(executor, std::move(masters), options, out, std::move(done));
    }
};

} // namespace detail

/// Makes masters a guarded group: gives each a marker, which entitles it to vote in guarded mode. Or arms the masters of a
/// group where clients can't, or deletes markers: see `provision_action`.
///
/// `on` is an executor or an execution context. `masters` are the options of a manager, of which the run uses all that
/// concern connections, the observer and the key prefix, which is that of the group. `out` receives the report immediately before completion, and
/// must live until then.
///
/// - Handler signature: `void(redlock::error_code)`.
/// - Executor: the handler's associated executor, by default `on`. The handler is never called inside the initiating
///   function.
/// - Cancellation: all types. A run that is cancelled may leave masters in quarantine, which do no harm: another run with
///   the same options continues.
/// - Errors: `provisioning_failed` (see the report), `invalid_ttl`, `invalid_master`, `invalid_config`,
///   `operation_aborted`, and system errors if there are no resources for a timer.
/// - Lifetimes: if the execution context is destroyed during the operation, the handler is destroyed without a call.
/// - Thread safety: may be called on any thread.
///
/// The run looks at all masters. Each must answer, be a master with `maxmemory-policy noeviction`, permit the commands of the
/// run (it tries them in a form that changes nothing), and belong to no group, or to an unfinished run for the same masters and
/// options. Otherwise it changes nothing and fails. Then it puts all masters
/// into quarantine, waits for `provisioning_wait`, so that every lock that another client may count on has expired, looks at
/// all of them again, and arms them.
///
/// The observer of `masters` is notified of the connections, of each master in quarantine when the wait begins
/// (`master_quarantined`), and of each that is armed (`master_armed`).
///
/// `arm` and `arm_again` do the same with the masters of a group that aren't armed, if the rules of `provision_action` permit it.
/// A master that gives no answer is left out, and clients arm it later. The floor of the fencing tokens is above the counters
/// that are left and above the masters' clocks. `config::guarded` may name the group; then masters of another one are refused.
///
/// `change_group` needs the masters of both groups: those of the new one, then those that leave. It moves the old masters to the
/// new group, so that the old one can't grant locks any more, puts the new ones into quarantine, waits for `provisioning_wait`
/// with the longer `max_ttl` of both, checks that a quorum of the old masters has stayed moved, and arms the new ones. No lock
/// can be acquired meanwhile. An old master that gives no answer is moved by another run with the same options.
///
/// A run that was interrupted is continued by the next one. Two runs at once are safe: both may succeed, or one of them
/// fails. A run on masters that are armed already succeeds with `provision_outcome::complete`.
template <
    class Config = config,
    boost::asio::completion_token_for<void(error_code)> Token = boost::asio::deferred_t>
    requires std::same_as<std::remove_cvref_t<Config>, config>
auto async_provision(
    detail::executor_source on, Config&& masters, provision_options options, provision_report& out,
    Token&& token = Token{})
{
    const auto begin = [&]
    {
        return boost::asio::async_initiate<Token, void(error_code)>(
            detail::provision_initiation{on.get()}, token,
            std::make_shared<const config>(std::forward<Config>(masters)), options, &out);
    };
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    static_assert(
        std::is_lvalue_reference_v<Config> || !detail::is_for_co_await<decltype(begin())>,
        "g++ 12 destroys a temporary config twice inside a co_await expression: name it first");
#endif
    return begin();
}

} // namespace redlock
