// SPDX-License-Identifier: BSL-1.0
// What is owed to one master.
#include "net/ledger.hpp"

#include <cassert>

namespace redlock::net
{

ledger::~ledger()
{
    while (!standing_.empty())
    {
        settle(standing_.front());
    }
    while (!due_.empty())
    {
        settle(due_.front());
    }
}

ledger::debt_list& ledger::list_of(debt_state state) noexcept
{
    return state == debt_state::due ? due_ : standing_;
}

void ledger::move(debt& item, debt_state to)
{
    debt_list& from = list_of(item.state);
    debt_list& into = list_of(to);
    item.state = to;
    if (&from != &into)
    {
        into.splice(into.end(), from, debt_list::s_iterator_to(item));
    }
}

void ledger::incur(debt& item)
{
    if (item.state != debt_state::none)
    {
        return;
    }
    intrusive_ptr_add_ref(item.of);
    item.state = debt_state::incurred;
    item.maybe_there = false;
    standing_.push_back(item);
    ++count_;
}

void ledger::demand(debt& item)
{
    if (item.state == debt_state::incurred)
    {
        move(item, debt_state::due);
    }
}

void ledger::ask(debt& item)
{
    assert(item.state == debt_state::due || item.state == debt_state::incurred);
    move(item, debt_state::asked);
}

void ledger::ask_again(debt& item)
{
    assert(item.state == debt_state::asked);
    move(item, debt_state::due);
}

void ledger::settle(debt& item) noexcept
{
    assert(item.state != debt_state::none);
    debt_list& list = list_of(item.state);
    list.erase(debt_list::s_iterator_to(item));
    item.state = debt_state::none;
    --count_;
    // The last one to know of the claim may have been this debt.
    intrusive_ptr_release(item.of);
}

} // namespace redlock::net
