// SPDX-License-Identifier: BSL-1.0
// Checks the protocol of the guarded mode: it holds in every scenario, and no rule of it can be left out.

#include "catalogue.hpp"

#include <cstdio>
#include <cstring>

namespace
{

using namespace model;

void print_trace(const std::vector<action>& trace)
{
    for (std::size_t i = 0; i < trace.size(); i++)
        std::printf("  %3zu  %s\n", i + 1, to_string(trace[i]).c_str());
}

bool check_proof(const proof& p)
{
    const protocol checked{p.where};
    const outcome found = p.walks != 0 ? walk(checked, 1, p.walks, 200) : explore(checked, p.states);
    if (p.walks != 0)
        std::printf(
            "%-44s %9llu walks, %llu steps", p.where.name.c_str(),
            static_cast<unsigned long long>(found.walks), static_cast<unsigned long long>(found.states));
    else
        std::printf(
            "%-44s %9llu states%s", p.where.name.c_str(), static_cast<unsigned long long>(found.states),
            found.complete ? ", complete" : "");
    std::printf(": %s\n", found.broken == invariant::none ? "holds" : to_string(found.broken));
    if (found.broken != invariant::none)
        print_trace(shorten(checked, found).trace);
    return found.broken == invariant::none && (found.complete || !p.complete);
}

// Without the rule the schedule has to break a promise, and with it nothing.
bool check_ablation(const ablation& a, bool verbose)
{
    scenario ablated = a.where;
    ablated.off.set(static_cast<std::size_t>(a.without));
    const outcome broken = replay(protocol{ablated, checks::promises}, a.schedule);
    const outcome whole = replay(protocol{a.where}, a.schedule);
    const bool passed = broken.broken == a.breaks && whole.broken == invariant::none;
    std::printf(
        "%-44s breaks %-13s in %2zu steps, with the rule %s\n", a.name.c_str(), to_string(broken.broken),
        broken.trace.size(), to_string(whole.broken));
    if (!passed || verbose)
        print_trace(broken.trace);
    if (whole.broken != invariant::none)
        print_trace(whole.trace);
    return passed;
}

} // namespace

int main(int count, char** arguments)
{
    const bool verbose = count > 1 && std::strcmp(arguments[1], "--traces") == 0;
    bool passed = true;
    for (const ablation& a : ablations())
        passed &= check_ablation(a, verbose);
    for (const proof& p : proofs())
        passed &= check_proof(p);
    return passed ? 0 : 1;
}
