// SPDX-License-Identifier: BSL-1.0
// The outstanding keys of one master.
#include "net/ledger.hpp"

#include <cassert>

namespace redlock::net
{

void ledger::incur(claim& of) noexcept
{
    debt& item = of.at(master_);
    if (item.state == debt_state::none)
    {
        item = {debt_state::incurred, false};
        ++count_;
    }
    else
    {
        item.maybe_there = true; // The earlier SET may have run, whatever the reply to this one is.
    }
}

void ledger::rule_out(claim& of) noexcept
{
    const debt& item = of.at(master_);
    if (item.state != debt_state::none && !item.maybe_there)
    {
        settle(of);
    }
}

void ledger::demand(claim& of)
{
    debt& item = of.at(master_);
    if (item.state == debt_state::incurred)
    {
        item.state = debt_state::due;
        due_.emplace_back(&of);
    }
}

claim* ledger::next_due() noexcept
{
    while (!due_.empty() && due_.front()->at(master_).state != debt_state::due)
    {
        due_.pop_front();
    }
    return due_.empty() ? nullptr : due_.front().get();
}

void ledger::ask(claim& of) noexcept
{
    debt& item = of.at(master_);
    assert(item.state == debt_state::due || item.state == debt_state::incurred);
    item.state = debt_state::asked;
    if (!due_.empty() && due_.front().get() == &of)
    {
        due_.pop_front();
    }
}

void ledger::ask_again(claim& of)
{
    debt& item = of.at(master_);
    assert(item.state == debt_state::asked);
    item.state = debt_state::due;
    due_.emplace_back(&of);
}

void ledger::settle(claim& of) noexcept
{
    debt& item = of.at(master_);
    assert(item.state != debt_state::none);
    item.state = debt_state::none;
    --count_;
}

} // namespace redlock::net
