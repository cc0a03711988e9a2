// SPDX-License-Identifier: BSL-1.0
// One fan-out to all masters.
#include "manager/round.hpp"

#include "manager/lock_service.hpp"

#include <algorithm>
#include <utility>

namespace redlock::manager
{

round::round(lock_service& service, std::size_t masters)
    : service_{service}, ballot_{masters}, votes_(masters)
{
}

void round::begin(redlock::operation what, holding& about, std::chrono::milliseconds ttl, env::wake* listener)
{
    what_ = what;
    about_ = detail::holding_ptr{&about};
    ttl_ = ttl;
    node_timeout_ = service_.node_timeout(ttl);
    timed_out_ = false;
    ballot_ = core::ballot{votes_.size()};
    votes_.assign(votes_.size(), master_report{});
    listener_ = listener;
    started_ = service_.strand().now();
}

void round::await_votes()
{
    if (ballot_.count(vote::pending) > 0)
    {
        service_.strand().arm(*this, started_ + node_timeout_);
    }
}

bool round::confirmed() const noexcept
{
    return ballot_.count(vote::granted) + ballot_.count(vote::held) >= ballot_.quorum();
}

bool round::settled() const noexcept
{
    const std::size_t answered = ballot_.count(vote::granted) + ballot_.count(vote::held);
    return answered + ballot_.count(vote::pending) < ballot_.quorum();
}

bool round::hopeless() const noexcept
{
    const auto refused = static_cast<std::size_t>(std::count_if(
        votes_.begin(), votes_.end(),
        [](const master_report& each) { return net::is_for_good(each.reason); }));
    return votes_.size() - refused < ballot_.quorum();
}

void round::describe(report& out) const
{
    std::vector<master_report> votes = votes_;
    if (timed_out_)
    {
        for (master_report& each : votes)
        {
            if (each.vote == vote::pending)
            {
                each = {vote::timed_out, node_timeout_, master_errc::timed_out, {}};
            }
        }
    }
    out.operation = what_;
    out.node_timeout = node_timeout_;
    out.assign(service_.names(), votes);
}

void round::on_vote(std::size_t master, const net::answer& said) noexcept
{
    if (!ballot_.cast(master, said.vote))
    {
        return;
    }
    const auto elapsed = service_.strand().now() - started_;
    votes_[master] = {said.vote, elapsed, said.reason, short_text{said.text}};
    if (ballot_.count(vote::pending) == 0)
    {
        disarm();
    }
    if (what_ == redlock::operation::extend)
    {
        service_.on_extension_vote(*this, master);
    }
    tell();
}

bool round::wants_script() const noexcept
{
    // An extension is worth having on every master: only those who gave it back are done with it.
    const bool open = outcome() == core::verdict::undecided || what_ == redlock::operation::extend;
    return open && !timed_out_ && about_->state() == holding_state::held;
}

void round::on_deadline()
{
    timed_out_ = true;
    // The answers to an extension count for as long as the lease is valid; of the others the time is over.
    if (what_ != redlock::operation::extend)
    {
        for (std::size_t master = 0; master < votes_.size(); ++master)
        {
            if (ballot_.cast(master, vote::timed_out))
            {
                votes_[master] = {vote::timed_out, node_timeout_, master_errc::timed_out, {}};
            }
        }
    }
    tell();
}

void round::tell() noexcept
{
    if (listener_ != nullptr)
    {
        listener_->notify();
    }
}

void round::recycle() noexcept
{
    disarm();
    about_ = {};
    service_.recycle(*this);
}

} // namespace redlock::manager
