// SPDX-License-Identifier: BSL-1.0
// What guarded mode promises although a master's clock has jumped ahead.
#include "jump_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace redlock::test
{

namespace
{

// If the clocks of two masters change within this time, a client may conclude that its own stood still.
constexpr std::chrono::seconds together{5};

} // namespace

void jump_rules::set(std::size_t master, bool ahead, clock::time_point at, const std::string& nonce)
{
    all_.push_back({master, ahead, at, nonce});
}

void jump_rules::noticed(const client& by, std::size_t master, clock::time_point at, const std::string& nonce)
{
    const auto last =
        std::find_if(all_.rbegin(), all_.rend(), [&](const change& each) { return each.master == master; });
    // What happened between the jump and the notice may have been seen by the client or not.
    if (last != all_.rend() && last->ahead && !nonce.empty() && last->nonce == nonce)
    {
        known_.insert_or_assign({by, master}, knowledge{*last, at});
    }
}

std::optional<violation> jump_rules::counted(
    const client& by, clock::time_point began, std::size_t master, clock::time_point now,
    const std::string& nonce, std::chrono::milliseconds max_ttl) const
{
    const auto found = known_.find({by, master});
    if (distrusted_ || found == known_.end() || began <= found->second.since)
    {
        return std::nullopt;
    }
    const change& jump = found->second.jump;
    const auto is_near = [&](const change& each)
    { return each.master != master && each.at >= jump.at - together; };
    if (jump.nonce != nonce || now >= jump.at + max_ttl || std::any_of(all_.begin(), all_.end(), is_near))
    {
        return std::nullopt;
    }
    return violation{
        "known clock",
        fmt::format(
            "client {} counts the vote of master {}, though it was notified {} us before that "
            "the clock has jumped",
            by.first, master,
            std::chrono::duration_cast<std::chrono::microseconds>(began - found->second.since).count())};
}

} // namespace redlock::test
