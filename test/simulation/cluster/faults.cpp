// SPDX-License-Identifier: BSL-1.0
// The faults of a simulated run.
#include "faults.hpp"

namespace redlock::test
{

const std::vector<fault>& all_faults()
{
    static const std::vector<fault> all = []
    {
        std::vector<fault> together;
        for (const auto& some : {network_faults(), master_faults(), process_faults()})
        {
            together.insert(together.end(), some.begin(), some.end());
        }
        return together;
    }();
    return all;
}

} // namespace redlock::test
