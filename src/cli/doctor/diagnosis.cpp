// SPDX-License-Identifier: BSL-1.0
// Computes verdicts from findings.
#include "cli/doctor/diagnosis.hpp"

#include "cli/common/message.hpp"

#include <redlock/vote.hpp>

#include <algorithm>

namespace redlock::cli
{

namespace
{

verdict verdict_of(const std::vector<finding>& findings)
{
    verdict result = verdict::good;
    for (const finding& each : findings)
    {
        const verdict by_this = each.level == severity::failure   ? verdict::unusable
                                : each.level == severity::warning ? verdict::usable
                                                                  : verdict::good;
        result = std::max(result, by_this);
    }
    return result;
}

/// Returns true if the operating system refused to connect to the master, which says nothing about the master.
bool is_refused(const master_facts& one) noexcept
{
    const auto by_system = [](const probe_outcome& each) { return is_refused_by_system(each.reason); };
    return is_refused_by_system(one.examined.reason) ||
           (one.probed && std::any_of(one.probed->steps.begin(), one.probed->steps.end(), by_system));
}

} // namespace

diagnosis diagnose(const std::vector<master_facts>& masters)
{
    diagnosis all;
    all.quorum = quorum_of(masters.size());
    bool all_good = true;
    for (const master_facts& one : masters)
    {
        master_diagnosis& entry = all.masters.emplace_back();
        entry.facts = one;
        entry.findings = findings_of(one, masters);
        entry.result = verdict_of(entry.findings);
        all.usable += entry.result == verdict::unusable ? 0U : 1U;
        all_good = all_good && entry.result == verdict::good;
    }
    all.result = all.usable < all.quorum ? verdict::unusable : all_good ? verdict::good : verdict::usable;
    return all;
}

std::string_view to_string(verdict value) noexcept
{
    switch (value)
    {
    case verdict::good:
        return "good";
    case verdict::usable:
        return "usable";
    case verdict::unusable:
        return "unusable";
    }
    return "unknown";
}

exit_code exit_code_of(const diagnosis& all) noexcept
{
    switch (all.result)
    {
    case verdict::good:
        return exit_code::success;
    case verdict::usable:
        return exit_code::found;
    case verdict::unusable:
        break;
    }
    const bool refused = std::any_of(
        all.masters.begin(), all.masters.end(),
        [](const master_diagnosis& each) { return is_refused(each.facts); });
    return refused ? exit_code::system_error : exit_code::no_quorum;
}

} // namespace redlock::cli
