// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of one master.
#include "net/ledger.hpp"

#include <cassert>

namespace redlock::net
{

void ledger::mark_sent(claim& of) noexcept
{
    outstanding_key& item = of.at(master_);
    if (item.state == outstanding_state::none)
    {
        item = {outstanding_state::sent, false};
        ++count_;
    }
    else
    {
        item.maybe_there = true; // The earlier SET may have run, whatever the reply to this one is.
    }
}

void ledger::rule_out(claim& of) noexcept
{
    const outstanding_key& item = of.at(master_);
    if (item.state != outstanding_state::none && !item.maybe_there)
    {
        clear(of);
    }
}

void ledger::mark_due(claim& of)
{
    outstanding_key& item = of.at(master_);
    if (item.state == outstanding_state::sent)
    {
        item.state = outstanding_state::due;
        due_.emplace_back(&of);
    }
}

claim* ledger::next_due() noexcept
{
    while (!due_.empty() && due_.front()->at(master_).state != outstanding_state::due)
    {
        due_.pop_front();
    }
    return due_.empty() ? nullptr : due_.front().get();
}

void ledger::mark_release_sent(claim& of) noexcept
{
    outstanding_key& item = of.at(master_);
    assert(item.state == outstanding_state::due || item.state == outstanding_state::sent);
    item.state = outstanding_state::release_sent;
    if (!due_.empty() && due_.front().get() == &of)
    {
        due_.pop_front();
    }
}

void ledger::requeue(claim& of)
{
    outstanding_key& item = of.at(master_);
    assert(item.state == outstanding_state::release_sent);
    item.state = outstanding_state::due;
    due_.emplace_back(&of);
}

void ledger::clear(claim& of) noexcept
{
    outstanding_key& item = of.at(master_);
    assert(item.state != outstanding_state::none);
    item.state = outstanding_state::none;
    --count_;
}

} // namespace redlock::net
