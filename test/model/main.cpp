// SPDX-License-Identifier: BSL-1.0
// Checks the protocol of the guarded mode: it holds in every scenario, and no rule of it can be left out.

#include "catalogue.hpp"

#include <cstdio>
#include <string_view>

namespace
{

using namespace model;

constexpr std::uint64_t max_states = 20'000'000;
constexpr int max_steps = 200;
constexpr const char* usage =
    R"(usage: guarded_model ablations [--traces]   the schedules that break a promise without a rule
       guarded_model exhaustive             all states of small scenarios
       guarded_model random [FIRST [WALKS]] random walks through large scenarios, from a seed on
)";

void print_trace(const std::vector<action>& trace)
{
    for (std::size_t i = 0; i < trace.size(); i++)
        std::printf("  %3zu  %s\n", i + 1, to_string(trace[i]).c_str());
}

// A scenario in which an attempt never gets a token shows nothing.
bool is_vacuous(const proof& p, const outcome& found)
{
    return found.issued != (1 << p.where.attempts.size()) - 1;
}

bool check_proof(const proof& p, std::uint64_t first_seed)
{
    const protocol checked{p.where};
    const outcome found =
        p.walks != 0 ? walk(checked, first_seed, p.walks, max_steps) : explore(checked, max_states);
    const bool vacuous = found.broken == invariant::none && is_vacuous(p, found);
    std::printf(
        "%-38s %9llu %s%s: %s\n", p.where.name.c_str(), static_cast<unsigned long long>(found.states),
        p.walks != 0 ? "steps" : "states", found.complete ? "" : ", incomplete",
        vacuous ? "some attempt never gets a token" : to_string(found.broken));
    std::fflush(stdout);
    if (found.broken != invariant::none)
        print_trace(shorten(checked, found).trace);
    return found.broken == invariant::none && found.complete && !vacuous;
}

bool check_proofs(std::vector<proof> proofs, std::uint64_t first_seed, std::uint64_t walks)
{
    bool passed = true;
    for (proof& p : proofs)
    {
        p.walks = walks != 0 ? walks : p.walks;
        passed &= check_proof(p, first_seed);
    }
    return passed;
}

// Without the rule the schedule has to break the invariant, and with it none.
bool check_ablation(const ablation& a, bool verbose)
{
    scenario ablated = a.where;
    ablated.off.set(static_cast<std::size_t>(a.without));
    const outcome broken = replay(protocol{ablated, a.wanted}, a.schedule);
    const outcome whole = replay(protocol{a.where}, a.schedule);
    const bool passed = broken.broken == a.breaks && whole.broken == invariant::none;
    std::printf(
        "%-38s %s after %zu steps; with the rule: %s\n", a.name.c_str(), to_string(broken.broken),
        broken.trace.size(), to_string(whole.broken));
    if (!passed || verbose)
        print_trace(broken.trace);
    if (whole.broken != invariant::none)
        print_trace(whole.trace);
    return passed;
}

bool check_search(const searched& s, bool verbose)
{
    scenario ablated = s.where;
    ablated.off.set(static_cast<std::size_t>(s.without));
    const protocol model{ablated, checks::promises};
    const outcome found = explore(model, max_states);
    const outcome shorter = found.broken != invariant::none ? shorten(model, found) : found;
    std::printf(
        "search: %-30s %s after %zu steps, in %llu states\n", s.where.name.c_str(), to_string(found.broken),
        shorter.trace.size(), static_cast<unsigned long long>(found.states));
    if (verbose)
        print_trace(shorter.trace);
    return found.broken != invariant::none;
}

bool check_ablations(bool verbose)
{
    bool passed = true;
    rule_set shown;
    for (const ablation& a : ablations())
    {
        passed &= check_ablation(a, verbose);
        shown.set(static_cast<std::size_t>(a.without));
    }
    for (const searched& s : searched_ablations())
        passed &= check_search(s, verbose);
    if (!shown.all())
        std::printf("%zu rules have no ablation\n", shown.size() - shown.count());
    return passed && shown.all();
}

} // namespace

int main(int count, char** arguments)
{
    const std::string_view part = count > 1 ? arguments[1] : "";
    const auto number_at = [&](int i, unsigned long long otherwise)
    { return count > i ? std::stoull(arguments[i]) : otherwise; };
    if (part == "ablations")
        return check_ablations(count > 2) ? 0 : 1;
    if (part == "exhaustive")
        return check_proofs(exhaustive_proofs(), 0, 0) ? 0 : 1;
    if (part == "random")
        return check_proofs(random_proofs(), number_at(2, 1), number_at(3, 0)) ? 0 : 1;
    std::fputs(usage, stderr);
    return 64;
}
