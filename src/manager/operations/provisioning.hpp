// SPDX-License-Identifier: BSL-1.0
// A run of provisioning: its steps, and what it has found.
#pragma once

#include <redlock/provision.hpp>

#include "core/change_plan.hpp"
#include "core/provision_advice.hpp"
#include "manager/lock_service.hpp"
#include "manager/operations/provision_replies.hpp"
#include "net/arming_commands.hpp"
#include "net/guard_keys.hpp"
#include "runtime/tasks.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::manager
{

/// A run of provisioning. The service and its connections serve this run only.
///
/// It looks at all masters, tries whether those that take part can be changed, puts them into quarantine, waits, looks again, and
/// arms them. All decisions are those of core/provision_plan.hpp, core/arming_plan.hpp and core/change_plan.hpp;
/// core/provision_advice.hpp names the next step of the operator. Each step can fail or be cancelled; another run then continues,
/// by what it finds.
class provisioning
{
  public:
    /// `report` receives what the run finds and achieves. Both must outlive this object.
    provisioning(
        lock_service& service, active_operation& self, const provision_options& options, std::string group,
        provision_report& report);

    /// Does all of it. Returns the result of the operation.
    runtime::task<error_code> run();

    runtime::scheduler& strand() noexcept { return service_.strand(); }

  private:
    // How often a run looks again because another client was faster. Two runs for the same masters need one more look: the
    // second continues what the first has begun.
    static constexpr int max_looks = 4;

    /// How a step has ended.
    enum class step_end : std::uint8_t
    {
        done,
        overtaken, // A master had another marker than expected. Another look shows what it is.
        failed     // The reason is in the report, or the run was cancelled.
    };

    runtime::task<error_code> prepare();
    runtime::task<bool> connect();
    runtime::task<bool> look();
    runtime::task<bool> reconnect_and_look();
    bool participants_are_ready() const;
    runtime::task<error_code> decide_by_trial();
    error_code decide();
    void judge();
    core::provision_plan plan() const;
    core::advised_run asked() const;
    void advise(const std::string& next_step);
    void advise_after();
    bool is_refused_for_keys();
    runtime::task<bool> try_changes();
    void leave_out(std::size_t master);
    runtime::task<step_end> begin_quarantines();
    runtime::task<step_end> begin_quarantines_on(const std::vector<std::size_t>& masters);
    runtime::task<error_code> await_expiry();
    void notify_quarantines(clock::time_point end);
    runtime::task<error_code> check_again();
    bool is_as_expected() const;
    runtime::task<error_code> arm_all();
    runtime::task<step_end> arm(const std::vector<std::size_t>& masters);
    bool take_floor();
    void note_floor(const std::vector<std::size_t>& asked, step_end end);
    runtime::task<error_code> change();
    core::change_order wanted_change() const;
    bool is_replaced();
    bool has_markers_of_others() const;
    runtime::task<error_code> arm_moved();
    void note_moved();
    error_code conclude();
    runtime::task<error_code> retire();
    bool note_retired(std::size_t master, const change_answer& answer);
    runtime::task<bool> await_replies(const reply_collector& replies);
    runtime::task<bool> pause_until(clock::time_point end);

    /// Returns how many of the masters are members of the group. They are the first ones.
    std::size_t members() const { return report_.masters.size() - options_.leaving; }
    bool is_change() const { return options_.action == provision_action::change_group || options_.takeover; }
    core::marker new_marker(std::size_t master) const;
    std::string random_id() const;
    int database_of(std::size_t master) const { return service_.options().masters[master].database(); }
    void note(std::size_t master, provision_finding found, std::string_view detail = {});
    void note_failure(std::size_t master, error_code reason, std::string_view detail);
    error_code failure() const;

    lock_service& service_;
    active_operation& self_;
    provision_options options_;
    std::string group_; // That is wanted, or made by a change; empty for any.
    provision_report& report_;
    net::guard_keys keys_;
    std::vector<net::failure> refusals_; // By master: why it can't be changed, by a trial; or empty.
    std::vector<core::provision_sight> seen_;
    core::provision_plan plan_;
    core::member_record record_;
    std::vector<std::optional<core::marker>>
        expected_;            // By master: the marker that it has; empty if it takes no part.
    bool adds_clock_ = false; // The floor is above the masters' clocks.
    std::string command_;
};

} // namespace redlock::manager
