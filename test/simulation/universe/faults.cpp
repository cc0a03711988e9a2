// SPDX-License-Identifier: BSL-1.0
// Everything that can go wrong in a universe.
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
