// SPDX-License-Identifier: BSL-1.0
// The scenarios in which the protocol holds: small ones completely, large ones by random walks.

#include "catalogue.hpp"

namespace model
{

namespace
{

constexpr mask three = 0b111;

// Equal clients of three masters.
scenario three_masters(std::string name, std::size_t attempts, std::size_t guardians)
{
    scenario s;
    s.name = std::move(name);
    const client c{.list = three};
    s.attempts.assign(attempts, c);
    s.guardians.assign(guardians, c);
    return s;
}

scenario with_faults(scenario s, int faults, int kinds)
{
    s.faults = static_cast<number>(faults);
    s.fault_kinds = static_cast<number>(kinds);
    return s;
}

} // namespace

std::vector<proof> proofs()
{
    std::vector<proof> all;
    const auto add = [&](const scenario& where) { all.push_back({where, 10'000'000}); };
    add(three_masters("three masters, no fault", 2, 0));
    add(with_faults(three_masters("a server is emptied", 2, 1), 1, fault::flush));
    return all;
}

} // namespace model
