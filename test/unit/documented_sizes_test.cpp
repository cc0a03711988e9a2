// SPDX-License-Identifier: BSL-1.0
// The sizes that docs/deployment.md gives under "Memory". Nothing runs: they are compared when this is compiled.
#include "manager/lease_state.hpp"
#include "manager/round.hpp"
#include "resp/parser.hpp"

#include <redlock/config.hpp>

#include <cstddef>

namespace redlock
{

static_assert(sizeof(detail::lease_state) == 320, "an owner id");
static_assert(sizeof(detail::failed_extension) == 80 && sizeof(master_report) == 136, "failed votes");
static_assert(sizeof(manager::round) == 576, "a round");
static_assert(sizeof(net::claim_ptr) == 8, "a release that waits for its master");
static_assert(
    resp::limits{}.reply_bytes + resp::parser::read_room == std::size_t{80} * 1024, "the buffer of a reply");

} // namespace redlock
