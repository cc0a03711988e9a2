// SPDX-License-Identifier: BSL-1.0
// The public API of provisioning: its start, and the text of its report.
#include "api/provision.hpp"

#include "api/cancellation.hpp"
#include "api/create.hpp"
#include "core/members.hpp"
#include "core/provision_plan.hpp"
#include "core/validity.hpp"
#include "manager/deliver.hpp"
#include "manager/enter.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/operations.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace redlock
{

namespace
{

namespace asio = boost::asio;

/// Checks what the action needs, and that nothing is given that it would ignore.
void check(const provision_options& options, std::size_t masters, const std::string& group)
{
    constexpr std::chrono::milliseconds shortest{1};
    const bool is_creation = options.action == provision_action::make_group;
    const bool is_change = options.action == provision_action::change_group;
    const bool makes_group = is_creation || is_change;
    const bool may_lack_ttl = !makes_group && options.max_ttl.count() == 0;
    if (options.action > provision_action::change_group)
    {
        throw system_error{errc::invalid_config, "there is no such action of provisioning"};
    }
    if (options.action == provision_action::arm_again && group.empty())
    {
        throw system_error{
            errc::invalid_config, "the group to arm again isn't named: guarded.group has to be its name"};
    }
    if (options.takeover && !makes_group)
    {
        throw system_error{
            errc::invalid_config,
            "takeover can't be used with this action: only a run that makes or changes a "
            "group can take over another one"};
    }
    if (options.leaving > 0 && !is_change && !options.takeover)
    {
        throw system_error{
            errc::invalid_config,
            "leaving can't be used with this action: masters leave only in a change or a "
            "takeover"};
    }
    if (options.leaving > 0 && masters > max_masters)
    {
        throw system_error{
            errc::invalid_config,
            fmt::format(
                "there are {} masters, {} of which leave: both lists together may have {}", masters,
                options.leaving, max_masters)};
    }
    if (options.leaving > 0 && options.leaving >= masters)
    {
        throw system_error{
            errc::invalid_config,
            fmt::format(
                "leaving is {} of {} masters: a group needs one master or more", options.leaving, masters)};
    }
    if (options.stopped > options.leaving)
    {
        throw system_error{
            errc::invalid_config,
            fmt::format(
                "stopped is {}: it must be at most leaving, which is {}", options.stopped, options.leaving)};
    }
    if (options.fresh && (!is_creation || options.takeover))
    {
        throw system_error{
            errc::invalid_config, "fresh can't be used with this action: only masters that are made a group "
                                  "can do without the wait"};
    }
    if (!may_lack_ttl && (options.max_ttl < shortest || options.max_ttl > core::max_ttl))
    {
        throw system_error{
            errc::invalid_ttl,
            fmt::format(
                "a max_ttl of {} ms can't be used: it must be from {} to {} ms (100 years)",
                options.max_ttl.count(), shortest.count(), core::max_ttl.count())};
    }
}

/// The names of the masters become a record, which each master keeps.
void check_names(const config& options)
{
    for (const master& each : options.masters)
    {
        const core::member_record alone{std::string(core::guard_id_length, '0'), {each.name()}};
        if (!core::parse_members(core::to_text(alone)))
        {
            throw system_error{
                errc::invalid_master,
                fmt::format(
                    "the master {} can't be a member of a group: its address must have at most {} bytes, "
                    "printable and without spaces",
                    short_text{each.name()}.view(), core::max_member_name)};
        }
    }
}

/// Returns what was refused, without the sentence of the error code that follows it.
std::string refusal_of(const system_error& error)
{
    const std::string text = error.what();
    if (error.code().category() == boost::system::system_category())
    {
        return text.substr(0, text.rfind(" [")); // Without the error's number.
    }
    return text.substr(0, text.find(": " + error.code().message()));
}

std::string result_line(const provision_report& of)
{
    if (!of.argument_error.empty())
    {
        return of.argument_error;
    }
    if (of.result)
    {
        // Without the reference to the report, which this is.
        const std::string message = of.result.message();
        const bool is_unchanged = of.outcome == provision_outcome::unchanged;
        return message.substr(0, message.find(": ")) +
               (is_unchanged ? "; no master was changed" : "; another run continues");
    }
    if (of.group.empty())
    {
        return of.outcome == provision_outcome::complete ? "there was no marker" : "the markers were deleted";
    }
    const auto members = std::count_if(
        of.masters.begin(), of.masters.end(),
        [](const provisioned_master& each)
        { return each.found != provision_finding::left_group && each.found != provision_finding::stopped; });
    return fmt::format(
        "group {} of {} masters, {}", of.group, members,
        of.outcome == provision_outcome::complete ? "armed already" : "armed");
}

std::string master_line(const provisioned_master& of)
{
    std::string line{to_string(of.found)};
    if (of.reason)
    {
        line += ": " + of.reason.message();
    }
    if (!of.detail.empty())
    {
        line += fmt::format(" (\"{}\")", of.detail);
    }
    return line;
}

} // namespace

std::string_view to_string(provision_outcome value) noexcept
{
    switch (value)
    {
    case provision_outcome::unchanged:
        return "unchanged";
    case provision_outcome::unfinished:
        return "unfinished";
    case provision_outcome::provisioned:
        return "provisioned";
    case provision_outcome::incomplete:
        return "incomplete";
    case provision_outcome::complete:
        return "complete";
    case provision_outcome::retired:
        return "retired";
    }
    return "unknown";
}

std::string provision_report::to_string() const
{
    std::string text = "provision: " + result_line(*this);
    for (const provisioned_master& each : masters)
    {
        text += fmt::format("\n  {}: {}", each.name, master_line(each));
    }
    return advice.empty() ? text : text + "\n  next: " + advice;
}

std::ostream& operator<<(std::ostream& out, const provision_report& value)
{
    return out << value.to_string();
}

clock::duration provisioning_wait(std::chrono::milliseconds max_ttl, double drift_factor) noexcept
{
    return core::provision_wait(max_ttl, drift_factor);
}

void api::provision(
    const asio::any_io_executor& executor, const config& masters, provision_options options,
    std::shared_ptr<const runtime::environment> outside, provision_report* out,
    detail::status_completion& done)
{
    config plain = masters;
    const bool needs_group =
        options.action == provision_action::arm || options.action == provision_action::arm_again;
    std::string group = needs_group && plain.guarded ? std::move(plain.guarded->group) : std::string{};
    plain.guarded.reset(); // Its looks and quarantines are for masters of a group.
    const detail::manager_handle_ptr handle = create(executor, std::move(plain), std::move(outside));
    // From here on, the operation itself ends the service.
    const std::uint64_t id = handle->next_operation();
    try
    {
        watch_cancellation(handle, done, id);
        manager::provision_call call{options, std::move(group), out, std::move(done), id};
        // If it isn't started, the context is being destroyed, and the handler with it.
        manager::enter(
            *handle, manager::operation_start<manager::provision_call>{manager::provision, std::move(call)});
    }
    catch (...)
    {
        // Out of memory: the operation hasn't begun.
        handle->abort();
        throw;
    }
}

void detail::start_provision(
    const executor_source& on, std::shared_ptr<const config> masters, provision_options options,
    provision_report* out, status_completion done)
{
    *out = {};
    try
    {
        check(options, masters->masters.size(), masters->guarded ? masters->guarded->group : std::string{});
        std::shared_ptr<const runtime::environment> outside = api::real_environment(*masters);
        check_names(*masters);
        api::provision(on.get(), *masters, options, std::move(outside), out, done);
    }
    catch (const system_error& error)
    {
        out->result = error.code();
        out->argument_error = refusal_of(error);
        asio::post(
            on.get(), [done = std::move(done), why = error.code()]() mutable
            { manager::deliver(std::move(done), why); });
    }
}

} // namespace redlock
